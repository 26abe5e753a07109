#!/usr/bin/env python3
"""Trains an EAGLE-3 drafter twice, by SpecForge's training step and by ours: the same data in the
same order, the same first weights, steps and recipe. Prints what is accepted of both.

    PYTHONPATH=SPECFORGE tests/training/compare_reference.py TARGET_FOLDER CAPTURE_FOLDER
        [--steps N] [--context N] [--rows N] [--rate R] [--draft-vocab N] [--intermediate N]

SPECFORGE holds a copy of https://github.com/sgl-project/SpecForge beside what it imports (torch,
transformers). The recipe is that of EAGLE-3's authors: cross-entropy with the target's
distribution over the draft's tokens, a step ahead 0.8 of the one before, AdamW with betas 0.9 and
0.95, gradients clipped to 0.5."""

import argparse
import dataclasses
import os
import pathlib
import sys
import time
import types

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # SpecForge's functions as they are written.
import torch
import transformers

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "training"))
from foretoken_train import command, packing
from foretoken_train.capture import CapturedSequence, load_capture
from foretoken_train.drafter import Inputs, every_place, rows_of_step
from foretoken_train.evaluate import Evaluation, evaluate
from foretoken_train.kinds import eagle3
from foretoken_train.target import load_target
from foretoken_train.teacher import Teacher
from foretoken_train.train import Training

BETAS = (0.9, 0.95)


def parse():
    parser = argparse.ArgumentParser()
    command.add_arguments(eagle3.KIND, parser)
    parser.set_defaults(steps=200, context=128, rows=8, steps_ahead=5, draft_vocab=768,
                        intermediate=256, rate=2e-3, warmup=20, hold_back=48, loss="ce")
    named = ["--target", sys.argv[1], "--data", sys.argv[2], "--out", "unused"]
    return parser.parse_args(named + sys.argv[3:])


def one_in_a_row(sequences, length):
    """Those that fill more than half of a row, so that none shares one: SpecForge has no pieces."""
    return [CapturedSequence(*(getattr(sequence, field.name)[:length]
                               for field in dataclasses.fields(sequence)))
            for sequence in sequences if len(sequence.tokens) > length // 2]


def shifted(values):
    """The next position's in place of each one's; zeros at the end."""
    return torch.cat([values[:, 1:], torch.zeros_like(values[:, :1])], 1)


def reference_model(network, target, settings):
    from specforge.algorithms.eagle3 import model as training
    from specforge.core import loss
    from specforge.modeling.draft.llama3_eagle import LlamaForCausalLMEagle3
    # Its kernel for a processor that is not here computes what it has there in torch, too.
    training.LogSoftmaxLoss = types.SimpleNamespace(apply=loss._compute_loss)
    config = {**network.config_json(), "pad_token_id": 0}
    draft = LlamaForCausalLMEagle3(transformers.LlamaConfig(**config), attention_backend="sdpa")
    draft.float()
    missing, unexpected = draft.load_state_dict(network.state_dict(), strict=False)
    assert not unexpected and set(missing) <= {"embed_tokens.weight", "t2d", "d2t"}, missing
    with torch.no_grad():
        tensors = network.tensors()
        draft.d2t.copy_(tensors["d2t"])
        draft.t2d.copy_(tensors["t2d"])
        draft.embed_tokens.weight.copy_(target.embeddings.float())
    draft.embed_tokens.weight.requires_grad_(False)
    return training.OnlineEagle3Model(draft, length=settings.steps_ahead, attention_backend="sdpa")


def train_reference(model, teacher, batches, settings):
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=settings.rate, betas=BETAS, weight_decay=0)
    for step in range(settings.steps):
        batch = next(batches)
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * min(
                (step + 1) / settings.warmup,
                (settings.steps - step) / (settings.steps - settings.warmup))
        optimizer.zero_grad(set_to_none=True)
        # Slot t has the token behind it, and learns the target's row behind it where the answer has
        # the token that this row chooses.
        losses = model(
            input_ids=shifted(batch.tokens), attention_mask=batch.segment >= 0,
            target=shifted(batch.final @ teacher.tables.output.T),
            loss_mask=rows_of_step(batch, every_place(batch), 0).valid[..., None].float(),
            hidden_states=batch.taps)[0]
        loss = sum(settings.decay ** ahead * each for ahead, each in enumerate(losses))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, settings.clip)
        optimizer.step()
        if (step + 1) % 20 == 0:
            print(f"  step {step + 1}, loss {loss.item():.4f}", file=sys.stderr, flush=True)


def show(name, network, teacher, held, settings, seconds):
    figures = evaluate(network, teacher, held, settings.context, settings.steps_ahead)
    lengths = []
    for temperature, rates in (("0", figures.greedy), ("1", figures.sampled)):
        lengths.append(Evaluation.length(rates))
        print(f"{name}, T = {temperature}: " + " ".join(f"{rate:.3f}" for rate in rates) +
              f", {lengths[-1]:.3f} tokens a pass")
    print(f"{name}: {seconds:.0f} s of a processor", flush=True)
    return lengths


def main():
    arguments = parse()
    torch.set_num_threads(1)
    settings = command.settings_of(arguments)
    target = load_target(arguments.target)
    capture = load_capture(arguments.data, target)
    sequences = one_in_a_row(capture.sequences, settings.context)
    held, sequences = sequences[:arguments.hold_back], sequences[arguments.hold_back:]
    inputs = Inputs(target, capture.layers, capture.tokenizer, sequences, arguments)
    ours, theirs = eagle3.KIND.make(inputs), eagle3.KIND.make(inputs)
    teacher = Teacher(target, ours.ids, torch.device("cpu"))
    show("untrained", ours, teacher, held, settings, 0)

    begun = time.process_time()
    Training(ours, teacher, settings, {}).run(sequences, settings.steps)
    our_lengths = show("ours", ours, teacher, held, settings, time.process_time() - begun)

    model = reference_model(theirs, target, settings)
    batches = packing.epochs(sequences, settings.context, settings.rows, settings.seed, 0)
    begun = time.process_time()
    train_reference(model, teacher, batches, settings)
    trained = model.draft_model.state_dict()
    theirs.load_state_dict({name: trained[name] for name in theirs.state_dict()})
    their_lengths = show("SpecForge", theirs, teacher, held, settings,
                         time.process_time() - begun)
    print("ours / SpecForge: " + ", ".join(
        f"{own / other:.3f} at T = {temperature}"
        for temperature, own, other in zip((0, 1), our_lengths, their_lengths)))


if __name__ == "__main__":
    main()
