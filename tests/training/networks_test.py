#!/usr/bin/env python3
"""The networks that are trained are those that run: networks_test.py. Exits with 77 where torch is
missing."""

import argparse
import json
import pathlib
import sys
import tempfile
import unittest

try:
    import numpy
    import torch
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "training"), str(ROOT / "tests/training")]
from foretoken_train import packing
from foretoken_train.drafter import Inputs, Tables, every_place, rows_of_step
from foretoken_train.kinds import exit  # pylint: disable=redefined-builtin
from foretoken_train.kinds.dflash import Dflash, DflashConfig
from foretoken_train.kinds.dspark import Dspark, DsparkConfig
from foretoken_train.kinds.draft_model import load_draft_model
from foretoken_train.kinds.eagle3 import Eagle3, Eagle3Config
from foretoken_train.kinds.hydra import Hydra
from foretoken_train.kinds.medusa import Medusa
from foretoken_train.kinds.mtp import Mtp, MtpConfig
from foretoken_train.layers import LayerShape
from foretoken_train.packing import Batch
from foretoken_train.safetensors import SafetensorsFile
from foretoken_train.target import Target, load_target
from random_data import EMBEDDINGS, HIDDEN, VOCABULARY, one_row, random_sequences
from small_target import SmallTarget, write_random_target

GOLDEN = ROOT / "tests/golden"
SHAPE = LayerShape(hidden_size=HIDDEN, intermediate_size=12, num_attention_heads=4,
                   num_key_value_heads=2, head_dim=4)
TABLES = Tables(EMBEDDINGS, torch.randn(VOCABULARY, HIDDEN,
                                        generator=torch.Generator().manual_seed(8)))


def randomized(network):
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.6 + (parameter.dim() == 1))
    return network


def random_eagle3():
    return randomized(Eagle3(Eagle3Config(SHAPE, VOCABULARY, 11, 64, (2, 3, 3)), torch.arange(11)))


def drafted(network, batch, count):
    with torch.no_grad():
        return network.drafts(batch, TABLES, count, torch.Generator().manual_seed(0))


class Chain:
    """The drafter as it runs: one slot after another in float64, keys and values in a list."""

    def __init__(self, network):
        self.weights = {name: value.detach().double().numpy()
                        for name, value in network.state_dict().items()}
        self.embeddings = TABLES.embeddings.double().numpy()
        self.keys, self.values = [], []

    def norm(self, name, x):
        return x / numpy.sqrt((x * x).mean() + SHAPE.rms_norm_eps) * self.weights[name + ".weight"]

    def turned(self, heads, position):
        half = SHAPE.head_dim // 2
        result = heads.copy()
        for pair in range(half):
            angle = position * SHAPE.rope_theta ** (-pair / half)
            low, high = heads[:, pair], heads[:, pair + half]
            result[:, pair] = low * numpy.cos(angle) - high * numpy.sin(angle)
            result[:, pair + half] = high * numpy.cos(angle) + low * numpy.sin(angle)
        return result

    def slot(self, token, feature, position):
        """Appends a slot; its feature and log q."""
        at = "midlayer.self_attn."
        both = numpy.concatenate([self.norm("midlayer.input_layernorm", self.embeddings[token]),
                                  self.norm("midlayer.hidden_norm", feature)])
        query, key, value = ((self.weights[f"{at}{part}_proj.weight"] @ both)
                             .reshape(-1, SHAPE.head_dim) for part in "qkv")
        query = self.turned(query, position)
        self.keys.append(self.turned(key, position))
        self.values.append(value)
        read = []
        for head in range(SHAPE.num_attention_heads):
            shared = head * SHAPE.num_key_value_heads // SHAPE.num_attention_heads
            scores = numpy.array([keys[shared] @ query[head] for keys in self.keys])
            weights = numpy.exp(scores / SHAPE.head_dim ** 0.5)
            weights /= weights.sum()
            read.append(sum(weight * values[shared]
                            for weight, values in zip(weights, self.values)))
        x = feature + self.weights[at + "o_proj.weight"] @ numpy.concatenate(read)
        n = self.norm("midlayer.post_attention_layernorm", x)
        gate = self.weights["midlayer.mlp.gate_proj.weight"] @ n
        up = self.weights["midlayer.mlp.up_proj.weight"] @ n
        x = x + self.weights["midlayer.mlp.down_proj.weight"] @ (gate / (1 + numpy.exp(-gate)) * up)
        logits = self.weights["lm_head.weight"] @ self.norm("norm", x)
        return x, logits - numpy.log(numpy.exp(logits).sum())


class RowsTest(unittest.TestCase):
    def test_rows_of_a_step_stay_in_their_piece_and_in_the_answer(self):
        sequences = random_sequences([6, 5], prompt=3)
        batch = packing.batch_of(sequences, packing.pack(packing.pieces_of(sequences, 12), 12), 12)
        for step in range(5):
            rows = rows_of_step(batch, every_place(batch), step)
            expected = []
            for begin, length in ((0, 6), (6, 5)):
                for slot in range(length):
                    drafted = slot + 2 + step
                    if 3 <= drafted < length:
                        expected.append(begin + slot)
                        self.assertEqual(int(rows.source[0, begin + slot]), begin + drafted - 1)
                        self.assertEqual(int(rows.token[0, begin + slot]),
                                         int(batch.tokens[0, begin + drafted]))
            self.assertEqual(rows.valid[0].nonzero()[:, 0].tolist(), expected)


class Eagle3Test(unittest.TestCase):
    def test_a_step_of_training_is_a_step_of_a_real_chain(self):
        network = random_eagle3()
        sequences = random_sequences([9, 7])
        rows = packing.pack(packing.pieces_of(sequences, 20), 20)
        self.assertEqual(len(rows), 1)
        batch = packing.batch_of(sequences, rows, 20)
        steps = drafted(network, batch, 4).log_q
        compared = 0
        for sequence, begin in zip(sequences, (0, 9)):
            taps = sequence.taps.double().numpy() @ network.fc.weight.detach().double().numpy().T
            for start in range(len(sequence.tokens) - 1):
                chain = Chain(network)
                for slot in range(start + 1):
                    feature, log_q = chain.slot(sequence.tokens[slot + 1], taps[slot], slot)
                for step in range(4):
                    if step:
                        if start + 1 + step >= len(sequence.tokens):
                            break
                        feature, log_q = chain.slot(sequence.tokens[start + 1 + step], feature,
                                                    start + step)
                    trained = steps[step][0, begin + start].double().numpy()
                    numpy.testing.assert_allclose(trained, log_q, atol=2e-4)
                    compared += 1
        self.assertEqual(compared, 8 * 4 - 6 + 6 * 4 - 6)

    def test_bfloat16_is_near_float32(self):
        network = random_eagle3()
        batch = one_row([9])
        exact = drafted(network, batch, 2).log_q
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = drafted(network, batch, 2).log_q
        for one, other in zip(exact, rounded):
            self.assertLess(float((one.exp() - other.exp()).abs().max()), 0.1)
            self.assertFalse(torch.equal(one, other))


class GoldenTest(unittest.TestCase):
    """Drafters of tests/golden/drafters, whose logits the code of others has computed."""

    def compare(self, name, network, golden, weights):
        target = SafetensorsFile(GOLDEN / golden["target"] / "model.safetensors")
        tables = Tables(target.tensor("model.embed_tokens.weight").float(),
                        target.tensor("lm_head.weight").float())
        network.load_state_dict(weights)
        taps = torch.tensor(golden["taps"])

        def log_q(tokens, rows, steps):
            features = torch.cat([taps[:rows], torch.zeros(len(tokens) - rows, taps.shape[1])])
            batch = Batch(torch.tensor(tokens)[None], torch.ones(1, len(tokens), dtype=torch.bool),
                          features[None], features[None],
                          torch.zeros(1, len(tokens), dtype=torch.int64),
                          torch.arange(len(tokens))[None])
            with torch.no_grad():
                return [step[0] for step in network.drafts(batch, tables, steps, None).log_q]

        def check(logs, logits):
            expected = torch.log_softmax(torch.tensor(logits), -1)
            numpy.testing.assert_allclose(logs.numpy(), expected.numpy(), atol=2e-4, err_msg=name)

        tokens, kept, nodes = golden["token_ids"], golden["kept"], golden["nodes"]
        check(log_q(tokens, len(taps), 1)[0][:len(taps)], golden["logits"])
        for last in range(len(nodes)):
            path = [last]
            while nodes[path[0]]["parent"] >= 0:
                path.insert(0, nodes[path[0]]["parent"])
            steps = log_q(tokens[:kept + 1] + [nodes[node]["token"] for node in path], kept,
                          len(path) + 1)
            check(steps[-1][kept - 1], nodes[last]["logits"])

    def test_eagle3(self):
        folder = GOLDEN / "drafters/eagle3-trained"
        golden = json.loads((folder / "golden.json").read_text())
        file = SafetensorsFile(folder / "model.safetensors")
        network = Eagle3(Eagle3Config(LayerShape(32, 48, 4, 2, 8), 128, 80, 256, (2, 4, 6)),
                         torch.tensor(golden["drafted_ids"]))
        written = json.loads((folder / "config.json").read_text())
        own = network.config_json()
        self.assertEqual({name: own[name] for name in written if name in own},
                         {name: written[name] for name in written if name in own})
        self.compare("eagle3", network, golden, {
            name: file.tensor(name).float() for name in network.state_dict()})

    def test_mtp(self):
        folder = GOLDEN / "drafters/speculators-mtp-qwen3"
        golden = json.loads((folder / "golden.json").read_text())
        file = SafetensorsFile(folder / "model.safetensors")
        network = Mtp(MtpConfig(LayerShape(32, 64, 4, 2, 16, rope_theta=1e6), 128, 256, 2))
        written = json.loads((folder / "config.json").read_text())["transformer_layer_config"]
        own = network.config_json()["transformer_layer_config"]
        for name in set(own) - {"tie_word_embeddings"}:
            self.assertEqual(own[name], written[name], name)
        self.compare("mtp", network, golden, {
            own: file.tensor(name).float()
            for own, name in zip(network.state_dict(), network.tensors())})

    def test_dflash(self):
        folder = GOLDEN / "drafters/dflash"
        golden = json.loads((folder / "golden.json").read_text())
        file = SafetensorsFile(folder / "model.safetensors")
        target = SafetensorsFile(GOLDEN / golden["target"] / "model.safetensors")
        tables = Tables(target.tensor("model.embed_tokens.weight").float(),
                        target.tensor("lm_head.weight").float())
        network = Dflash(DflashConfig(LayerShape(32, 48, 4, 2, 16, rope_theta=1e5), 2, 6, 5, 128,
                                      256, (2, 4, 6), 7), 512)
        written = json.loads((folder / "config.json").read_text())
        own = network.config_json()
        self.assertEqual({name: own[name] for name in written if name in own},
                         {name: written[name] for name in written if name in own})
        network.load_state_dict({name: file.tensor(name).float()
                                 for name in network.state_dict()})
        tokens, taps = torch.tensor(golden["token_ids"])[None], torch.tensor(golden["taps"])[None]
        taps = torch.cat([taps, torch.zeros(1, 1, taps.shape[2])], 1)
        batch = Batch(tokens, torch.ones_like(tokens, dtype=torch.bool), taps, taps,
                      torch.zeros_like(tokens), torch.arange(tokens.shape[1])[None])
        with torch.no_grad():
            drafts = network.drafts(batch, tables, 5, torch.Generator().manual_seed(0))
        for block in golden["blocks"]:
            slot = drafts.place[0].tolist().index(block["begin"] - 1)
            expected = torch.log_softmax(torch.tensor(block["logits"]), -1)
            for log_q, row in zip(drafts.log_q, expected):
                numpy.testing.assert_allclose(log_q[0, slot].numpy(), row.numpy(), atol=2e-4)

    def test_dspark(self):
        """Those of `speculators`, which drafts some tokens only: the drafted tokens' logits."""
        folder = GOLDEN / "drafters/dspark-speculators"
        golden = json.loads((folder / "golden.json").read_text())
        file = SafetensorsFile(folder / "model.safetensors")
        target = SafetensorsFile(GOLDEN / golden["target"] / "model.safetensors")
        drafted = golden["drafted_ids"]
        output = torch.zeros(128, 32)
        output[drafted] = file.tensor("lm_head.weight").float()
        tables = Tables(target.tensor("model.embed_tokens.weight").float(), output)
        size = len(golden["blocks"][0]["logits"])
        backbone = DflashConfig(LayerShape(32, 48, 4, 2, 16, rope_theta=5e4), 2, size, 3, 128, 256,
                                (1, 4, 7), 7)
        network = Dspark(DsparkConfig(backbone, 12), 512)
        tensors = {name: file.tensor(name).float() for name in network.tensors()}
        added = torch.zeros(128, 12)
        added[drafted] = tensors["markov_head.markov_w2.weight"]
        tensors["markov_head.markov_w2.weight"] = added
        network.load_state_dict({own: tensors[name] for own, name in
                                 zip(network.state_dict(), network.tensors())})
        for block in golden["blocks"]:
            begin = block["begin"]
            tokens = golden["token_ids"][:begin] + block["path"] + [0]
            taps = torch.zeros(1, len(tokens), len(golden["taps"][0]))
            taps[0, :begin] = torch.tensor(golden["taps"][:begin])
            tokens = torch.tensor(tokens)[None]
            batch = Batch(tokens, torch.ones_like(tokens, dtype=torch.bool), taps, taps,
                          torch.zeros_like(tokens), torch.arange(tokens.shape[1])[None])
            with torch.no_grad():
                drafts = network.drafts(batch, tables, size, torch.Generator().manual_seed(0))
            slot = drafts.place[0].tolist().index(begin - 1)
            expected = torch.log_softmax(torch.tensor(block["logits"]), -1)
            for step, row in enumerate(expected):
                log_q = torch.log_softmax(drafts.log_q[step][0, slot, drafted], -1)
                numpy.testing.assert_allclose(log_q.numpy(), row.numpy(), atol=2e-4)
                self.assertAlmostEqual(float(drafts.confidence[step][0, slot]),
                                       block["confidence"][step], places=4)


class DraftModelTest(unittest.TestCase):
    def test_the_bundled_draft(self):
        """Its golden file is computed in float64 by plain Python."""
        models = ROOT / "models"
        golden = json.loads((models / "demo-draft/golden.json").read_text())
        network = load_draft_model(models / "demo-draft", load_target(models / "demo-target"))
        prompt, greedy = golden["prompt_ids"], golden["greedy_ids"]
        tokens = torch.tensor([prompt + greedy])
        count = tokens.shape[1]
        batch = Batch(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros(1, count, 1),
                      torch.zeros(1, count, 1), torch.zeros_like(tokens),
                      torch.arange(count)[None])
        first, second = (step[0] for step in drafted(network, batch, 2).log_q)
        # Slot t holds the token behind it, and drafts the next.
        at = len(prompt) - 2
        expected = torch.log_softmax(torch.tensor(golden["last_logits"]), -1)
        numpy.testing.assert_allclose(first[at].numpy(), expected.numpy(), atol=1e-4)
        self.assertEqual(first[at:-2].argmax(-1).tolist(), greedy)
        self.assertTrue(torch.equal(second[at:-3], first[at + 1:-2]))


class HeadsTest(unittest.TestCase):
    """One slot after the other in float64, by the names of the published tensors."""

    def setUp(self):
        target = Target(pathlib.Path("target"), {}, TABLES.embeddings, TABLES.output, None)
        self.batch = one_row([9, 7])
        self.networks = [randomized(kind(target, 3)) for kind in (Medusa, Hydra)]
        self.weights = [{name: value.detach().double() for name, value in
                         network.tensors().items()} for network in self.networks]

    def compare(self, log_q, logits, slot):
        numpy.testing.assert_allclose(log_q[0, slot].numpy(), torch.log_softmax(logits, -1).numpy(),
                                      atol=2e-4)

    def test_medusa(self):
        steps = drafted(self.networks[0], self.batch, 3).log_q
        weights = self.weights[0]
        for slot, state in enumerate(self.batch.final[0].double()):
            for head, log_q in enumerate(steps):
                inner = weights[f"{head}.0.linear.weight"] @ state + \
                    weights[f"{head}.0.linear.bias"]
                self.compare(log_q, weights[f"{head}.1.weight"] @ (
                    state + torch.nn.functional.silu(inner)), slot)

    def test_hydra(self):
        steps = drafted(self.networks[1], self.batch, 3).log_q
        weights = self.weights[1]
        for slot, state in enumerate(self.batch.final[0, :12].double()):
            for head, log_q in enumerate(steps):
                tokens = self.batch.tokens[0, slot + 1:slot + 2 + head]
                read = torch.cat([state, *TABLES.embeddings[tokens].double()])
                part = lambda name: (weights[f"hydra_mlp.{head}.0.{name}.weight"] @ read +
                                     weights[f"hydra_mlp.{head}.0.{name}.bias"])
                x = part("res_connection") + torch.nn.functional.silu(part("linear"))
                self.compare(log_q, weights[f"hydra_lm_head.{head}.weight"] @ x +
                             weights[f"hydra_lm_head.{head}.bias"], slot)


class ExitTest(unittest.TestCase):
    def test_before_training_it_is_the_target_cut_short(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_random_target(folder / "whole")
            write_random_target(folder / "short", num_hidden_layers=4)
            target = load_target(folder / "whole")
            network = exit.KIND.make(Inputs(target, (1, 3), "", [],
                                            argparse.Namespace(exit=3)))
            tokens = torch.randint(40, (2, 12), generator=torch.Generator().manual_seed(2))
            taps, final = SmallTarget(folder / "whole").forward(tokens, (1, 3))
            short = SmallTarget(folder / "short")
            expected = torch.log_softmax(short.logits(short.forward(tokens)[1]), -1)
            where = torch.arange(12).expand(2, 12)
            batch = Batch(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.cat(taps, -1),
                          final, torch.zeros_like(tokens), where)
            with torch.no_grad():
                steps = network.drafts(batch, Tables(target.embeddings, target.output), 2,
                                       torch.Generator()).log_q
            # Slot t holds the token at t + 1: what the row of that one says.
            for ahead, log_q in enumerate(steps, start=1):
                numpy.testing.assert_allclose(log_q[:, :12 - ahead].numpy(),
                                              expected[:, ahead:].numpy(), atol=1e-4)


class DflashTest(unittest.TestCase):
    SIZE, MASK = 4, 5

    def network(self, places=512):
        return randomized(Dflash(DflashConfig(SHAPE, 2, self.SIZE, self.MASK, VOCABULARY, 64,
                                              (2, 3, 3), 6), places))

    def block(self, network, tokens, taps):
        """log q [size - 1, vocabulary] of the block that begins at the last of `tokens`, whose
        predecessors have `taps`: one place and one key after another, in float64."""
        weights = {name: value.double() for name, value in network.state_dict().items()}
        width, start = SHAPE.head_dim, len(taps)

        def norm(name, x):
            return x / (x.square().mean(-1, keepdim=True) + SHAPE.rms_norm_eps).sqrt() * \
                weights[name + ".weight"]

        def turned(name, heads, position):
            angle = position * SHAPE.rope_theta ** (-torch.arange(width // 2) / (width // 2))
            heads = torch.view_as_complex(torch.stack(
                norm(name, heads).split(width // 2, -1), -1).contiguous())
            heads = heads * torch.polar(torch.ones(width // 2), angle.float()).to(heads.dtype)
            return torch.cat([heads.real, heads.imag], -1)

        ids = torch.tensor([tokens[-1]] + [self.MASK] * (self.SIZE - 1))
        x = TABLES.embeddings[ids].double()
        features = norm("hidden_norm", taps.double() @ weights["fc.weight"].T)
        for layer in range(2):
            at = f"layers.{layer}."
            project = lambda part, value: (weights[f"{at}self_attn.{part}_proj.weight"] @ value)
            normed = norm(at + "input_layernorm", x)
            read = []
            keys, values = [], []
            for place, value in enumerate([*features, *normed]):
                keys.append(turned(at + "self_attn.k_norm",
                                   project("k", value).view(-1, width), place))
                values.append(project("v", value).view(-1, width))
            for place, value in enumerate(normed):
                queries = turned(at + "self_attn.q_norm", project("q", value).view(-1, width),
                                 start + place)
                heads = []
                for head, query in enumerate(queries):
                    scores = torch.stack([key[head // 2] @ query for key in keys]) * width ** -0.5
                    heads.append(sum(weight * value[head // 2] for weight, value in
                                     zip(scores.softmax(0), values)))
                read.append(project("o", torch.cat(heads)))
            x = x + torch.stack(read)
            normed = norm(at + "post_attention_layernorm", x)
            gate, up, down = (weights[f"{at}mlp.{part}_proj.weight"].T
                              for part in ("gate", "up", "down"))
            x = x + (torch.nn.functional.silu(normed @ gate) * (normed @ up)) @ down
        return torch.log_softmax(norm("norm", x)[1:] @ TABLES.output.double().T, -1)

    def test_blocks_are_those_that_run(self):
        network = self.network()
        batch = one_row([9, 7])
        drafts = drafted(network, batch, 3)
        # Everywhere where there is a token of an answer to draft.
        self.assertEqual(drafts.place[0].tolist(), [*range(7), *range(9, 14)])
        for slot, place in enumerate(drafts.place[0].tolist()):
            begin = 9 if place >= 9 else 0
            taps = batch.taps[0, begin:place + 1]
            exact = self.block(network, batch.tokens[0, begin:place + 2].tolist(), taps)
            for step in range(3):
                numpy.testing.assert_allclose(drafts.log_q[step][0, slot].numpy(),
                                              exact[step].numpy(), atol=2e-4)

    def test_places_are_drawn(self):
        batch = packing.batch_of(random_sequences([9, 7, 12]),
                                 [[packing.Piece(0, 0, 9)], [packing.Piece(2, 0, 12)]], 12)
        network = self.network(places=3)
        valid = rows_of_step(batch, every_place(batch), 0).valid
        seen = set()
        for seed in range(9):
            place = network.drafts(batch, TABLES, 3, torch.Generator().manual_seed(seed)).place
            again = network.drafts(batch, TABLES, 3, torch.Generator().manual_seed(seed)).place
            self.assertTrue(torch.equal(place, again))
            self.assertEqual(list(place.shape), [2, 3])
            self.assertTrue(bool(valid.gather(1, place).all()))
            seen.add(tuple(place[1].tolist()))
        self.assertGreater(len(seen), 4)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
