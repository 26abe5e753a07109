#!/usr/bin/env python3
"""The package that trains drafters: training_test.py. Exits with 77 where torch is missing."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

try:
    import numpy
    import torch
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "training"), str(ROOT / "tests/training")]
from foretoken_train import __main__ as program
from foretoken_train import losses, packing, publish, vocabulary
from foretoken_train.capture import CapturedSequence, load_capture
from foretoken_train.eagle3 import Eagle3, Eagle3Config, rows_of_step, unroll
from foretoken_train.evaluate import Evaluation, evaluate
from foretoken_train.failure import Failure
from foretoken_train.safetensors import SafetensorsFile, write_safetensors
from foretoken_train.target import load_target
from foretoken_train.teacher import Teacher
from small_target import SmallTarget, write_capture, write_random_target

CONFIG = Eagle3Config(hidden_size=8, intermediate_size=12, num_attention_heads=4,
                      num_key_value_heads=2, head_dim=4, vocab_size=20, draft_vocab_size=11,
                      max_position_embeddings=64, taps=3)


def random_network(seed=0):
    torch.manual_seed(seed)
    network = Eagle3(CONFIG)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.6 + (parameter.dim() == 1))
    return network


def random_sequences(lengths, prompt=2):
    return [CapturedSequence(
        torch.randint(20, (length,), dtype=torch.int32),
        (torch.arange(length) >= prompt).to(torch.uint8),
        torch.randn(length, 24).to(torch.bfloat16), torch.randn(length, 8).to(torch.bfloat16))
        for length in lengths]


class Chain:
    """The drafter as it runs: one slot after another in float64, keys and values in a list."""

    def __init__(self, network, embeddings):
        self.weights = {name: value.detach().double().numpy()
                        for name, value in network.state_dict().items()}
        self.embeddings = embeddings.double().numpy()
        self.keys, self.values = [], []

    def norm(self, name, x):
        return x / numpy.sqrt((x * x).mean() + CONFIG.rms_norm_eps) * self.weights[name + ".weight"]

    def turned(self, heads, position):
        half = CONFIG.head_dim // 2
        result = heads.copy()
        for pair in range(half):
            angle = position * CONFIG.rope_theta ** (-pair / half)
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
                             .reshape(-1, CONFIG.head_dim) for part in "qkv")
        query = self.turned(query, position)
        self.keys.append(self.turned(key, position))
        self.values.append(value)
        read = []
        for head in range(CONFIG.num_attention_heads):
            shared = head * CONFIG.num_key_value_heads // CONFIG.num_attention_heads
            scores = numpy.array([keys[shared] @ query[head] for keys in self.keys])
            weights = numpy.exp(scores / CONFIG.head_dim ** 0.5)
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


class NetworkTest(unittest.TestCase):
    def test_a_step_of_training_is_a_step_of_a_real_chain(self):
        network, embeddings = random_network(), torch.randn(20, 8)
        sequences = random_sequences([9, 7])
        rows = packing.pack(packing.pieces_of(sequences, 20), 20)
        self.assertEqual(len(rows), 1)
        batch = packing.batch_of(sequences, rows, 20)
        with torch.no_grad():
            steps = list(unroll(network, embeddings, batch, 4))
        compared = 0
        for sequence, begin in zip(sequences, (0, 9)):
            taps = sequence.taps.double().numpy() @ network.fc.weight.detach().double().numpy().T
            for start in range(len(sequence.tokens) - 1):
                chain = Chain(network, embeddings)
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

    def test_rows_of_a_step_stay_in_their_piece_and_in_the_answer(self):
        sequences = random_sequences([6, 5], prompt=3)
        batch = packing.batch_of(sequences, packing.pack(packing.pieces_of(sequences, 12), 12), 12)
        for step in range(5):
            rows = rows_of_step(batch, step)
            expected = []
            for begin, length in ((0, 6), (6, 5)):
                for slot in range(length):
                    drafted = slot + 2 + step
                    if 3 <= drafted < length:
                        expected.append(begin + slot)
                        self.assertEqual(int(rows.source[begin + slot]), begin + drafted - 1)
                        self.assertEqual(int(rows.token[0, begin + slot]),
                                         int(batch.tokens[0, begin + drafted]))
            self.assertEqual(rows.valid[0].nonzero()[:, 0].tolist(), expected)

    def test_bfloat16_is_near_float32(self):
        network, embeddings = random_network(), torch.randn(20, 8)
        batch = packing.batch_of(random_sequences([9]), [[packing.Piece(0, 0, 9)]], 9)
        with torch.no_grad():
            exact = list(unroll(network, embeddings, batch, 2))
            rounded = list(unroll(network, embeddings, batch, 2, torch.bfloat16))
        for one, other in zip(exact, rounded):
            self.assertLess(float((one.exp() - other.exp()).abs().max()), 0.1)
            self.assertFalse(torch.equal(one, other))


class LossTest(unittest.TestCase):
    def distributions(self):
        generator = torch.Generator().manual_seed(1)
        whole = torch.log_softmax(torch.randn(6, 9, generator=generator, dtype=torch.float64), -1)
        logits = torch.randn(6, 5, generator=generator, dtype=torch.float64)
        return whole[:, :5], logits

    def test_values(self):
        log_p, logits = self.distributions()
        p, q = log_p.exp().numpy(), torch.softmax(logits, -1).numpy()
        scaled = p / p.sum(-1, keepdims=True)
        alpha = numpy.minimum(p, q).sum(-1)
        entropy = -(scaled * numpy.log(scaled)).sum(-1)
        cross = -(scaled * numpy.log(q)).sum(-1)
        weight = numpy.exp(-3 * alpha)
        expected = {"ce": cross, "kl": cross - entropy, "tv": 1 - alpha,
                    "lk": weight * (cross - entropy) + (1 - weight) * (1 - alpha)}
        for name, loss in losses.LOSSES.items():
            with self.subTest(name):
                given = loss(log_p, torch.log_softmax(logits, -1)).numpy()
                numpy.testing.assert_allclose(given, expected[name], rtol=1e-9)

    def test_gradients_are_finite_differences(self):
        log_p, logits = self.distributions()
        fixed = torch.exp(-3 * losses.acceptance(log_p, torch.log_softmax(logits, -1)))

        def hybrid(log_p, log_q):  # With the weight that is not differentiated held as it was.
            return fixed * losses.kl(log_p, log_q) + (1 - fixed) * losses.total_variation(
                log_p, log_q)

        for name, loss in losses.LOSSES.items():
            values = hybrid if name == "lk" else loss
            variable = logits.clone().requires_grad_()
            loss(log_p, torch.log_softmax(variable, -1)).sum().backward()
            for row, column in ((0, 0), (3, 2), (5, 4)):
                step = torch.zeros_like(logits)
                step[row, column] = 1e-6
                up, down = (values(log_p, torch.log_softmax(logits + sign * step, -1)).sum()
                            for sign in (1, -1))
                self.assertAlmostEqual(float(variable.grad[row, column]),
                                       float(up - down) / 2e-6, places=6, msg=name)


class DataTest(unittest.TestCase):
    def test_vocabulary(self):
        sequence = CapturedSequence(torch.tensor([9, 9, 9, 7, 7, 3, 5], dtype=torch.int32),
                                    torch.tensor([0, 0, 0, 1, 1, 1, 1], dtype=torch.uint8),
                                    torch.zeros(7, 1), torch.zeros(7, 1))
        ids = vocabulary.frequent_tokens([sequence], 4, 10)
        self.assertEqual(ids.tolist(), [0, 3, 5, 7])  # 9 is in the prompt only.
        self.assertEqual((torch.arange(4) + vocabulary.offsets(ids)).tolist(), ids.tolist())
        members = vocabulary.membership(ids, 10)
        self.assertEqual(members.nonzero()[:, 0].tolist(), ids.tolist())

    def test_epochs_begin_where_they_are_told_and_have_every_piece_once(self):
        sequences = random_sequences([9, 7, 12, 5, 8, 6])
        endless = packing.epochs(sequences, 12, 2, 3, 0)
        all_batches = [next(endless) for _ in range(9)]
        for skipped in range(1, 8):
            batch = next(packing.epochs(sequences, 12, 2, 3, skipped))
            self.assertTrue(torch.equal(batch.taps, all_batches[skipped].taps))
        pieces = packing.pieces_of(sequences, 12)
        count, seen = 0, 0
        while seen < sum(piece.end - piece.begin for piece in pieces):
            seen += int((all_batches[count].segment >= 0).sum())
            count += 1
        self.assertEqual(seen, 47)
        self.assertLess(count, 9)
        self.assertFalse(torch.equal(all_batches[0].tokens, all_batches[count].tokens))

    def test_long_sequences_are_cut(self):
        pieces = packing.pieces_of(random_sequences([25]), 10)
        self.assertEqual([(piece.begin, piece.end) for piece in pieces], [(0, 10), (10, 20),
                                                                          (20, 25)])

    def test_an_acceptance_length_is_of_chains(self):
        self.assertAlmostEqual(Evaluation.length([0.5, 0.5]), 1.75)


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.target_folder = self.folder / "target"
        write_random_target(self.target_folder)
        self.data = self.folder / "data"
        self.data.mkdir()
        target = SmallTarget(self.target_folder)
        generator = torch.Generator().manual_seed(0)
        for shard in range(2):
            prompts = torch.randint(40, (6, 3), generator=generator)
            tokens = target.answers(prompts, 17, 1.0, generator)
            write_capture(target, tokens, 3, self.data / f"capture-{shard:05}.safetensors")

    def train(self, out, *options):
        arguments = ["foretoken_train", "eagle3", "--target", self.target_folder, "--data",
                     self.data, "--out", self.folder / out, "--steps", "6", "--context", "40",
                     "--steps-ahead", "3", "--draft-vocab", "24", "--rate", "3e-3",
                     "--warmup", "2", "--hold-back", "2", *options]
        output, errors = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", [str(argument) for argument in arguments]), \
                contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            return program.main(), output.getvalue() + errors.getvalue()

    def test_the_folder_is_of_the_published_dialect(self):
        self.assertEqual(self.train("drafter"), (0, mock.ANY))
        folder = self.folder / "drafter"
        file = SafetensorsFile(folder / "model.safetensors")
        shapes = {
            "fc.weight": [16, 48], "norm.weight": [16], "lm_head.weight": [24, 16],
            "midlayer.hidden_norm.weight": [16], "midlayer.input_layernorm.weight": [16],
            "midlayer.post_attention_layernorm.weight": [16],
            "midlayer.self_attn.q_proj.weight": [16, 32],
            "midlayer.self_attn.k_proj.weight": [8, 32],
            "midlayer.self_attn.v_proj.weight": [8, 32],
            "midlayer.self_attn.o_proj.weight": [16, 16], "midlayer.mlp.gate_proj.weight": [24, 16],
            "midlayer.mlp.up_proj.weight": [24, 16], "midlayer.mlp.down_proj.weight": [16, 24],
            "d2t": [24], "t2d": [40]}
        network = Eagle3(Eagle3Config(16, 24, 4, 2, 4, 40, 24, 64, 3))
        written = publish.eagle3_tensors(network, torch.arange(24), 40)
        self.assertEqual(set(written), set(shapes))
        for name, shape in shapes.items():
            self.assertEqual(list(file.tensor(name).shape), shape, name)
        self.assertEqual(file.tensor("d2t").dtype, torch.int64)
        self.assertEqual(file.tensor("t2d").dtype, torch.bool)
        ids = torch.arange(24) + file.tensor("d2t")
        self.assertEqual(ids.tolist(), file.tensor("t2d").nonzero()[:, 0].tolist())
        config = json.loads((folder / "config.json").read_text())
        for name, value in {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 16,
                            "target_hidden_size": 16, "draft_vocab_size": 24, "vocab_size": 40,
                            "num_hidden_layers": 1}.items():
            self.assertEqual(config[name], value)
        self.assertEqual(config["eagle_config"]["eagle_aux_hidden_state_layer_ids"], [1, 2, 2])
        self.assertIn("| T | 1 | 2 | 3 | tokens a pass |", (folder / "README.md").read_text())
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         ["README.md", "config.json", "model.safetensors"])

    def test_a_whole_vocabulary_has_no_map(self):
        self.assertEqual(self.train("drafter", "--draft-vocab", "100"), (0, mock.ANY))
        file = SafetensorsFile(self.folder / "drafter/model.safetensors")
        self.assertNotIn("d2t", file)
        self.assertEqual(list(file.tensor("lm_head.weight").shape), [40, 16])

    def test_resumed_is_uninterrupted(self):
        self.assertEqual(self.train("whole"), (0, mock.ANY))
        checkpoint = self.folder / "parts/training.checkpoint"
        whole_run = program.eagle3_command.Training.run
        for stop in (1, 4):
            def interrupted(training, sequences, until, path, save_every):
                whole_run(training, sequences, stop, path, save_every)
                training.save(path)
                raise KeyboardInterrupt
            resume = ["--resume"] if checkpoint.exists() else []
            with mock.patch.object(program.eagle3_command.Training, "run", interrupted), \
                    self.assertRaises(KeyboardInterrupt):
                self.train("parts", *resume)
        code, said = self.train("parts")
        self.assertEqual(code, 1)
        self.assertIn("--resume goes on with it", said)
        code, said = self.train("parts", "--resume", "--rate", "1e-3")
        self.assertEqual(code, 1)
        self.assertIn("was saved with rate = 0.003", said)
        self.assertEqual(self.train("parts", "--resume"), (0, mock.ANY))
        self.assertEqual(*((self.folder / name / "model.safetensors").read_bytes()
                           for name in ("whole", "parts")))

    def test_training_learns(self):
        lengths = []
        for steps in ("1", "80"):
            code, said = self.train(f"drafter-{steps}", "--steps", steps, "--rate", "2e-2")
            self.assertEqual(code, 0, said)
            lengths.append(float(said.split(" at T = 1")[0].split()[-1]))
        self.assertGreater(lengths[1], lengths[0] + 0.2)

    def test_evaluation_is_what_a_walk_along_the_answers_counts(self):
        target = load_target(self.target_folder)
        sequences = load_capture([self.data], target).sequences
        # The target's three favourites, so that even random chains are accepted often.
        best = torch.cat([one.final.float() @ target.output.float().T for one in sequences])
        ids = best.argmax(-1).bincount(minlength=40).topk(3).indices.sort().values
        torch.manual_seed(3)
        network = Eagle3(Eagle3Config(16, 24, 4, 2, 4, 40, 3, 64, 3))
        with torch.no_grad():
            network.lm_head.weight.copy_(target.output[ids].float())
        teacher = Teacher(target, ids, torch.device("cpu"))
        given = evaluate(network, teacher, sequences, 40, 3)
        sums = numpy.zeros((4, 3))
        for sequence in sequences:
            batch = packing.batch_of([sequence], [[packing.Piece(0, 0, 20)]], 20)
            with torch.no_grad():
                steps = [log_q[0].exp().double() for log_q in
                         unroll(network, teacher.embeddings, batch, 3)]
            p = torch.softmax(sequence.final.float() @ target.output.float().T, -1).double()
            for start in range(1, 18):
                alive, weight = 1, 1.0
                for step in range(3):
                    row, place = start + 1 + step, start + 2 + step
                    if place >= 20:
                        break
                    q = torch.zeros(40, dtype=torch.float64)
                    q[ids] = steps[step][start]
                    hit = alive and int(q.argmax() == p[row].argmax())
                    sums[:, step] += [alive, hit, weight,
                                      weight * float(torch.minimum(p[row], q).sum())]
                    token = int(sequence.tokens[place])
                    alive = int(hit and token == int(p[row].argmax()))
                    weight *= min(1.0, float(q[token] / p[row, token]))
        self.assertGreater(sums[0, 2], 2)
        numpy.testing.assert_allclose(given.greedy, sums[1] / sums[0].clip(1), atol=1e-9)
        numpy.testing.assert_allclose(given.sampled, sums[3] / sums[2], atol=1e-5)

    def test_wrong_data_are_refused_in_a_sentence(self):
        shard = SafetensorsFile(self.data / "capture-00000.safetensors")
        whole = {name: shard.tensor(name) for name in ("tokens", "answer", "starts", "taps",
                                                       "final")}
        for changes, metadata, expected in (
                ({}, {"format": "2"}, "is a capture of format 2"),
                ({}, {"layers": "2,x"}, "'layers' of the metadata"),
                ({}, {"layers": "2,3"}, "'taps' is torch.bfloat16"),
                ({}, {"layers": "2,3,7"}, "target has 6"),
                ({"tokens": whole["tokens"] + 40}, {}, "has tokens that target does not have"),
                ({"starts": whole["starts"][:-1]}, {}, "'starts' does not rise"),
                ({"final": whole["final"][:, :8]}, {}, "'final' is"),
                ({"answer": whole["answer"].int()}, {}, "'answer' is")):
            with self.subTest(expected):
                path = self.folder / "wrong.safetensors"
                write_safetensors(path, {**whole, **changes}, {**shard.metadata, **metadata})
                with self.assertRaisesRegex(Failure, expected):
                    load_capture([path], load_target(self.target_folder))
        (self.folder / "empty").mkdir()
        with self.assertRaisesRegex(Failure, "has no capture-"):
            load_capture([self.folder / "empty"], load_target(self.target_folder))

    def test_wrong_targets_are_refused_in_a_sentence(self):
        write_random_target(self.folder / "gemma", model_type="gemma2")
        with self.assertRaisesRegex(Failure, "of the family 'gemma2'"):
            load_target(self.folder / "gemma")
        with self.assertRaisesRegex(Failure, "cannot be read: No such file"):
            load_target(self.folder / "nowhere")

    def test_broken_files_are_refused_in_a_sentence(self):
        path = self.data / "capture-00000.safetensors"
        content = path.read_bytes()
        generator = torch.Generator().manual_seed(0)
        for cut in torch.randint(len(content), (40,), generator=generator).tolist():
            broken = self.folder / "broken.safetensors"
            broken.write_bytes(content[:cut])
            with self.assertRaisesRegex(Failure, "is not a safetensors file"):
                SafetensorsFile(broken)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
