#!/usr/bin/env bash
# The API by curl: start `foretoken serve` (./run serve), then examples/curl.sh [URL]
set -euo pipefail
url=${1:-http://127.0.0.1:8080}
post() { curl -sS --fail-with-body -H 'Content-Type: application/json' "$url$1" -d "$2"; }

echo "A chat:"
post /v1/chat/completions '{
  "messages": [{"role": "user", "content": "Tell me a story about a cat."}],
  "max_tokens": 60, "temperature": 0.7, "seed": 1
}'

echo -e "\n\nThe same text without speculation (see usage.mode and timings):"
post /v1/chat/completions '{
  "messages": [{"role": "user", "content": "Tell me a story about a cat."}],
  "max_tokens": 60, "temperature": 0.7, "seed": 1, "speculative": {"off": true}
}'

echo -e "\n\nA stream that shows its rounds:"
post /v1/completions '{
  "prompt": "Once upon a time", "max_tokens": 12, "temperature": 0,
  "stream": true, "stream_options": {"include_usage": true}, "speculation_trace": true
}'

echo -e "\nWhat the server did:"
curl -sS "$url/stats"
echo
