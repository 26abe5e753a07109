#!/usr/bin/env python3
"""A real Prometheus server scrapes /metrics: prometheus_test.py PROGRAM. Skips (exit code 77) where
none is installed. Also checks that every metric of the Grafana dashboard exists."""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from serving import Serving

SKIPPED = 77
DASHBOARD = pathlib.Path(__file__).parents[2] / "packaging" / "grafana-dashboard.json"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def query(port, expression):
    address = (f"http://127.0.0.1:{port}/api/v1/query?" +
               urllib.parse.urlencode({"query": expression}))
    with urllib.request.urlopen(address, timeout=5) as answer:
        return json.load(answer)["data"]["result"]


def wait_for(port, expression, good, seconds=40):
    result = None
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            result = query(port, expression)
            if result and good(result):
                return result
        except urllib.error.URLError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"{expression} gives {result}")


def check_dashboard(metrics):
    """Every metric that the dashboard's queries name is one that the server exports."""
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"]
                   for target in panel.get("targets", [])]
    assert len(expressions) > 10, expressions
    for expression in expressions:
        for name in re.findall(r"\bforetoken_\w+", expression):
            assert re.search(rf"^{name}[ {{]", metrics, re.MULTILINE), (name, expression)
    return expressions


def main():
    if shutil.which("prometheus") is None:
        print("skipped: prometheus is not installed")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder, \
            Serving(sys.argv[1], "--api-key", "secret") as server:
        key = {"Authorization": "Bearer secret"}
        body = {"prompt": "Once upon a time", "max_tokens": 64, "temperature": 0}
        for mode in ("ar", "ssd"):
            reply = server.post("/v1/completions", {**body, "speculative": {"mode": mode}},
                                headers=key)
            assert reply[0] == 200, reply
        expressions = check_dashboard(server.get("/metrics", headers=key)[2])

        port = free_port()
        config = pathlib.Path(folder) / "prometheus.yml"
        config.write_text(f"""
scrape_configs:
  - job_name: foretoken
    scrape_interval: 500ms
    scrape_timeout: 500ms
    authorization: {{credentials: secret}}
    static_configs: [{{targets: ["127.0.0.1:{server.port}"]}}]
""")
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port, 'up{job="foretoken"}', lambda result: result[0]["value"][1] == "1")
            generated = wait_for(port, "foretoken_generation_tokens_total",
                                 lambda result: len(result) >= 2)
            by_mode = {entry["metric"]["mode"]: float(entry["value"][1]) for entry in generated}
            assert by_mode["ar"] == 64 and by_mode["ssd"] == 64, by_mode
            accepted = query(port, "foretoken_spec_decode_num_accepted_tokens_total")
            assert float(accepted[0]["value"][1]) > 0, accepted
            positions = query(port, "foretoken_spec_decode_num_accepted_tokens_per_pos_total")
            assert sum(float(p["value"][1]) for p in positions) == \
                float(accepted[0]["value"][1]), positions
            for expression in expressions:  # Prometheus refuses what it cannot parse.
                query(port, expression.replace("$__rate_interval", "1m"))
        finally:
            prometheus.terminate()
            prometheus.wait()
    print(f"scraped; {len(expressions)} dashboard queries are good")


if __name__ == "__main__":
    main()
