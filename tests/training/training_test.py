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
from foretoken_train import command, losses, packing, vocabulary
from foretoken_train.capture import CapturedSequence, load_capture
from foretoken_train.kinds.eagle3 import Eagle3, Eagle3Config
from foretoken_train.layers import LayerShape
from foretoken_train.online import read_drafter
from foretoken_train.evaluate import Evaluation, evaluate
from foretoken_train.failure import Failure
from foretoken_train.safetensors import SafetensorsFile, write_safetensors
from foretoken_train.target import load_target
from foretoken_train.teacher import Teacher
from random_data import random_sequences
from small_target import TOKENIZER, SmallTarget, write_capture, write_random_target

SHAPE = LayerShape(hidden_size=16, intermediate_size=24, num_attention_heads=4,
                   num_key_value_heads=2, head_dim=4)

# What a kind is trained with here besides what all are.
OPTIONS = {"eagle3": ["--draft-vocab", "24"], "mtp": [], "medusa": [], "hydra": [],
           "dflash": ["--layers", "2", "--places", "9", "--weights", "pace"],
           "dspark": ["--layers", "2", "--places", "9", "--markov-rank", "6"],
           "draft-model": ["--hidden", "8", "--evaluate-ahead", "3"],
           "fr-head": ["--draft", "DRAFT", "--draft-vocab", "20", "--evaluate-ahead", "3"],
           "exit": ["--exit", "2", "--evaluate-ahead", "3"]}
ALONE = ("draft-model", "fr-head", "exit")  # They read tokens alone: all of their steps are alike.
# By how much longer what is accepted becomes.
GAINS = {"eagle3": 0.2, "mtp": 0.2, "medusa": 0.03, "hydra": 0.05, "dflash": 0.05,
         "dspark": 0.05, "draft-model": 0.05, "fr-head": 0.05,
         "exit": 0.01}


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
                    "l1": 0.1 * cross + 1.8 * (1 - alpha),
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


    def test_pace_is_what_the_length_gains_from_an_acceptance(self):
        generator = torch.Generator().manual_seed(2)
        chances = [torch.rand(2, 3, generator=generator) for _ in range(4)]
        valid = [torch.ones(2, 3, dtype=torch.bool) for _ in range(4)]
        valid[3][1, 2] = valid[2][1, 2] = False
        smooth = [(0.5 * chance + 0.5).requires_grad_() for chance in chances]
        length, reached = 0, 1
        for chance, there in zip(smooth, valid):
            reached = reached * torch.where(there, chance, torch.ones(()))
            length = length + (reached * there).sum()
        length.backward()
        for weights, chance, there in zip(losses.pace(chances, valid), smooth, valid):
            # The gradient by the logarithm, which is what a cross-entropy lowers.
            expected = (chance.grad * chance).detach() * there
            numpy.testing.assert_allclose(weights.numpy(), expected.numpy(), atol=1e-6)


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
        write_random_target(self.folder / "draft", seed=1, hidden_size=12, num_hidden_layers=2)
        self.data = self.folder / "data"
        self.data.mkdir()
        target = SmallTarget(self.target_folder)
        generator = torch.Generator().manual_seed(0)
        for shard in range(2):
            prompts = torch.randint(40, (6, 3), generator=generator)
            tokens = target.answers(prompts, 17, 1.0, generator)
            write_capture(target, tokens, 3, self.data / f"capture-{shard:05}.safetensors")

    def train(self, out, *options, kind="eagle3"):
        arguments = ["foretoken_train", kind, "--target", self.target_folder, "--data",
                     self.data, "--out", self.folder / out, "--steps", "6", "--context", "40",
                     "--rate", "3e-3", "--warmup", "2", "--hold-back", "2",
                     *([] if kind in ALONE else ["--steps-ahead", "3"]),
                     *(self.folder / "draft" if option == "DRAFT" else option
                       for option in OPTIONS[kind]), *options]
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
        network = Eagle3(Eagle3Config(SHAPE, 40, 24, 64, (2, 3, 3)), torch.arange(24))
        self.assertEqual(set(network.tensors()), set(shapes))
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
        for kind in OPTIONS:
            with self.subTest(kind):
                self.resume_twice(kind)

    def resume_twice(self, kind):
        whole, parts = (self.folder / f"{kind}-{name}" for name in ("whole", "parts"))
        self.assertEqual(self.train(whole, kind=kind), (0, mock.ANY))
        checkpoint = parts / "training.checkpoint"
        whole_run = command.Training.run
        for stop in (1, 4):
            def interrupted(training, sequences, until, path, save_every):
                whole_run(training, sequences, stop, path, save_every)
                training.save(path)
                raise KeyboardInterrupt
            resume = ["--resume"] if checkpoint.exists() else []
            with mock.patch.object(command.Training, "run", interrupted), \
                    self.assertRaises(KeyboardInterrupt):
                self.train(parts, *resume, kind=kind)
        code, said = self.train(parts, kind=kind)
        self.assertEqual(code, 1)
        self.assertIn("--resume goes on with it", said)
        code, said = self.train(parts, "--resume", "--rate", "1e-3", kind=kind)
        self.assertEqual(code, 1)
        self.assertIn("was saved with rate = 0.003", said)
        self.assertEqual(self.train(parts, "--resume", kind=kind), (0, mock.ANY))
        self.assertEqual(*((folder / "model.safetensors").read_bytes()
                           for folder in (whole, parts)))

    def test_training_learns(self):
        for kind in OPTIONS:
            with self.subTest(kind):
                lengths = []
                for steps in ("1", "60"):
                    code, said = self.train(f"{kind}-{steps}", "--steps", steps, "--rate", "2e-2",
                                            kind=kind)
                    self.assertEqual(code, 0, said)
                    lengths.append(float(said.split(" at T = 1")[0].split()[-1]))
                self.assertGreater(lengths[1], lengths[0] + GAINS[kind])

    def test_heads_are_published_as_their_authors_do(self):
        for kind, own in (("medusa", {"medusa_num_heads": 3, "medusa_num_layers": 1}),
                          ("hydra", {"hydra_num_heads": 3, "hydra_num_layers": 1,
                                     "hydra_head_arch": "mlp", "grounded_heads": True})):
            self.assertEqual(self.train(kind, kind=kind), (0, mock.ANY))
            config = json.loads((self.folder / kind / "config.json").read_text())
            for name, value in {**own, "hidden_size": 16, "vocab_size": 40,
                                "base_model_name_or_path": "target"}.items():
                self.assertEqual(config[name], value, name)
        file = SafetensorsFile(self.folder / "medusa/model.safetensors")
        for name, shape in {"2.0.linear.weight": [16, 16], "2.0.linear.bias": [16],
                            "2.1.weight": [40, 16]}.items():
            self.assertEqual(list(file.tensor(name).shape), shape, name)
        file = SafetensorsFile(self.folder / "hydra/model.safetensors")
        for name, shape in {"hydra_mlp.2.0.linear.weight": [16, 64],
                            "hydra_mlp.2.0.linear.bias": [16],
                            "hydra_mlp.2.0.res_connection.weight": [16, 64],
                            "hydra_mlp.2.0.res_connection.bias": [16],
                            "hydra_lm_head.2.weight": [40, 16],
                            "hydra_lm_head.2.bias": [40]}.items():
            self.assertEqual(list(file.tensor(name).shape), shape, name)

    def test_an_exit_is_published_as_a_layer_of_the_target(self):
        self.assertEqual(self.train("exit", kind="exit"), (0, mock.ANY))
        config = json.loads((self.folder / "exit/config.json").read_text())
        self.assertEqual((config["model_type"], config["exit"], config["hidden_size"]),
                         ("exit", 2, 16))
        trained = SafetensorsFile(self.folder / "exit/model.safetensors")
        whole = SafetensorsFile(self.folder / "target/model.safetensors")
        for name in ("self_attn.k_proj", "mlp.down_proj", "input_layernorm"):
            name = f"model.layers.2.{name}.weight"
            self.assertEqual(trained.tensor(name).shape, whole.tensor(name).shape, name)
        self.assertFalse(torch.equal(trained.tensor("model.norm.weight"),
                                     whole.tensor("model.norm.weight")))
        for options, says in ((["--exit", "4"], "is not one of the layers [2, 3, 3]"),
                              (["--exit", "5"], "--exit 5")):
            code, said = self.train("other", *options, kind="exit")
            self.assertEqual(code, 1)
            self.assertIn(says, said)

    def test_dflash_is_published_as_its_authors_do(self):
        self.assertEqual(self.train("drafter", "--mask-token", "3", kind="dflash"), (0, mock.ANY))
        config = json.loads((self.folder / "drafter/config.json").read_text())
        self.assertEqual(config["dflash_config"], {"mask_token_id": 3,
                                                   "target_layer_ids": [1, 2, 2]})
        for name, value in {"block_size": 4, "num_target_layers": 6, "num_hidden_layers": 2,
                            "model_type": "qwen3", "architectures": ["DFlashDraftModel"],
                            "hidden_size": 16, "vocab_size": 40}.items():
            self.assertEqual(config[name], value, name)
        code, said = self.train("other", "--mask-token", "40", kind="dflash")
        self.assertEqual(code, 1)
        self.assertIn("--mask-token 40 is no token of target, which has 40", said)

    def test_dspark_is_published_as_specforge_does(self):
        self.assertEqual(self.train("drafter", "--mask-token", "3", kind="dspark"), (0, mock.ANY))
        config = json.loads((self.folder / "drafter/config.json").read_text())
        self.assertEqual(config["dflash_config"], {
            "mask_token_id": 3, "target_layer_ids": [1, 2, 2], "projector_type": "dspark",
            "attention_mode": "gqa", "markov_rank": 6, "markov_head_type": "vanilla",
            "confidence_head_alpha": 1.0, "enable_confidence_head": True,
            "confidence_head_with_markov": True})
        for name, value in {"block_size": 3, "architectures": ["DSparkDraftModel"]}.items():
            self.assertEqual(config[name], value, name)
        file = SafetensorsFile(self.folder / "drafter/model.safetensors")
        for name, shape in {"markov_head.markov_w1.weight": [40, 6],
                            "markov_head.markov_w2.weight": [40, 6],
                            "confidence_head.proj.weight": [1, 22],
                            "confidence_head.proj.bias": [1], "norm.weight": [16]}.items():
            self.assertEqual(list(file.tensor(name).shape), shape, name)
        # What was trained is what says how likely tokens are to be accepted.
        self.assertGreater(float(file.tensor("confidence_head.proj.bias").float().abs()), 0)

    def test_what_is_trained_further_is_what_was_written(self):
        target = load_target(self.target_folder)
        for name, most in (("dflash", 3), ("dspark", 3), ("medusa", 3), ("hydra", 3),
                           ("eagle3", None), ("mtp", None)):
            folder = self.folder / name
            self.assertEqual(self.train(name, kind=name), (0, mock.ANY))
            kind, drafter = read_drafter(folder, target)
            self.assertEqual((kind.name, kind.most(drafter)), (name, most))
            file = SafetensorsFile(folder / "model.safetensors")
            for tensor, value in drafter.tensors().items():
                torch.testing.assert_close(file.tensor(tensor).float(), value.float(),
                                           rtol=0, atol=0, msg=f"{name} {tensor}")
            config = json.loads((folder / "config.json").read_text())
            self.assertEqual(drafter.config_json(), config)
            (folder / "config.json").write_text(json.dumps({**config, "fancy": True}))
            with self.assertRaises(Failure):
                read_drafter(folder, target)

    def test_taps_that_a_kind_cannot_use_are_refused(self):
        target = SmallTarget(self.target_folder)
        tokens = torch.randint(40, (4, 12), generator=torch.Generator().manual_seed(2))
        (self.data / "capture-00001.safetensors").unlink()
        for layers, kind, expected in (((0, 3), "dflash", "captures are of layers from 1 on"),
                                       ((2, 3), "eagle3", "EAGLE-3 reads 3")):
            write_capture(target, tokens, 3, self.data / "capture-00000.safetensors", layers)
            code, said = self.train("drafter", kind=kind)
            self.assertEqual(code, 1)
            self.assertIn(expected, said)

    def test_a_draft_model_goes_on_from_a_folder(self):
        draft = SafetensorsFile(self.folder / "draft/model.safetensors")
        (self.target_folder / "tokenizer.json").write_text("{}")
        code, said = self.train("drafter", "--begin-with", self.folder / "draft", "--rate", "1e-9",
                                kind="draft-model")
        self.assertEqual(code, 0, said)
        file = SafetensorsFile(self.folder / "drafter/model.safetensors")
        for name in ("model.embed_tokens.weight", "model.layers.1.mlp.up_proj.weight",
                     "lm_head.weight"):
            self.assertTrue(torch.allclose(file.tensor(name).float(), draft.tensor(name).float()))
        self.assertEqual((self.folder / "drafter/tokenizer.json").read_text(), "{}")
        config = json.loads((self.folder / "drafter/config.json").read_text())
        for name, value in {"model_type": "llama", "hidden_size": 12, "num_hidden_layers": 2,
                            "tie_word_embeddings": False, "vocab_size": 40}.items():
            self.assertEqual(config[name], value, name)
        for changes, expected in (
                ({"vocab_size": 41}, "has 41 tokens where target has 40"),
                ({"model_type": "gemma2"}, "of the family 'gemma2' cannot be trained"),
                ({"attention_bias": True}, "with 'attention_bias' cannot be trained")):
            write_random_target(self.folder / "wrong", **changes)
            code, said = self.train("other", "--begin-with", self.folder / "wrong",
                                    kind="draft-model")
            self.assertEqual(code, 1)
            self.assertIn(expected, said)

    def test_a_head_of_fewer_tokens(self):
        code, said = self.train("drafter", "--rate", "1e-2", kind="fr-head")
        self.assertEqual(code, 0, said)
        files = [SafetensorsFile(self.folder / name / "model.safetensors")
                 for name in ("draft", "drafter")]
        lines = (self.folder / "drafter/ranking.txt").read_text().splitlines()
        self.assertEqual(lines[0], f"foretoken-token-ranking 1 {TOKENIZER} 40")
        ranked, times = zip(*(map(int, line.split()) for line in lines[1:]))
        self.assertEqual(len(set(ranked)), 20)
        self.assertEqual(list(times), sorted(times, reverse=True))
        before, after = (file.tensor("lm_head.weight") for file in files)
        changed = (before != after).any(1).nonzero()[:, 0].tolist()
        self.assertEqual(changed, sorted(ranked))
        for name in ("model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight"):
            self.assertTrue(torch.equal(*(file.tensor(name) for file in files)))
        # Older captures do not say their tokenizer.
        shard = SafetensorsFile(self.data / "capture-00000.safetensors")
        del shard.metadata["tokenizer"]
        (self.data / "capture-00001.safetensors").unlink()
        write_safetensors(self.data / "capture-00000.safetensors", {
            name: shard.tensor(name).clone()
            for name in ("tokens", "answer", "starts", "taps", "final")}, shard.metadata)
        code, said = self.train("other", kind="fr-head")
        self.assertEqual(code, 1)
        self.assertIn("does not say of which tokenizer it is", said)

    def test_evaluation_is_what_a_walk_along_the_answers_counts(self):
        target = load_target(self.target_folder)
        sequences = load_capture([self.data], target).sequences
        # The target's three favourites, so that even random chains are accepted often.
        best = torch.cat([one.final.float() @ target.output.float().T for one in sequences])
        ids = best.argmax(-1).bincount(minlength=40).topk(3).indices.sort().values
        torch.manual_seed(3)
        network = Eagle3(Eagle3Config(SHAPE, 40, 3, 64, (2, 3, 3)), ids)
        with torch.no_grad():
            network.lm_head.weight.copy_(target.output[ids].float())
        teacher = Teacher(target, ids, torch.device("cpu"))
        given = evaluate(network, teacher, sequences, 40, 3)
        sums = numpy.zeros((4, 3))
        for sequence in sequences:
            batch = packing.batch_of([sequence], [[packing.Piece(0, 0, 20)]], 20)
            with torch.no_grad():
                steps = [log_q[0].exp().double() for log_q in
                         network.drafts(batch, teacher.tables, 3, None).log_q]
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
