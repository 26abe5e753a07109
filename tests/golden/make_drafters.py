#!/usr/bin/env python3
"""Writes drafters/NAME beside itself for each drafter of drafters.py, or for those named: a small
learned drafter of random weights, and golden.json with what the code of its kind's authors computes
from it in float32; and drafters/target, the model whose states they read. README.md beside it says
what the fields mean and how to install what this needs.

    tests/golden/make_drafters.py [NAME]...
"""

import contextlib
import copy
import importlib
import io
import json
import pathlib
import sys
import types

import safetensors.torch
import torch
import transformers

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "training"))

import make_families
from drafters import DRAFTERS, TARGET, TARGETS, VOCABULARY
from golden import HERE, versions, write_each

PROMPT = 20
KEPT = 13  # Positions whose features a drafter has when it begins to draft.
PARENTS = [-1, -1, 0, 0, 2, 1, 4]  # The parent of each node of a tree, level by level.
MOST_ERROR = 1e-4
SEEDS = range(20)


def randomize(model, generator):
    """As make_families does; every tensor holds numbers of BF16 only."""
    for name, weight in model.state_dict().items():
        if not weight.is_floating_point() or name.startswith("verifier_"):
            continue
        values = torch.randn(weight.shape, generator=generator)
        if weight.ndim == 1:
            values = float(weight.mean() > 0.5) + 0.3 * values  # Around what it is in a new model.
        else:
            values *= 0.5 if "embed" in name or "lm_head" in name else weight.shape[-1] ** -0.5
        weight.copy_(values.to(torch.bfloat16).float())


def draw_vocabulary(model, generator):
    """Which tokens are drafted: random ones, in ascending order."""
    drafted = torch.randperm(VOCABULARY, generator=generator)[:len(model.d2t)].sort().values
    model.d2t.copy_(drafted - torch.arange(len(drafted)))
    model.t2d.fill_(False)
    model.t2d[drafted] = True


def paths():
    """Of each node the nodes from the root to it."""
    all_paths = []
    for node, parent in enumerate(PARENTS):
        all_paths.append((all_paths[parent] if parent >= 0 else []) + [node])
    return all_paths


class Eagle:
    """EAGLE's own classes, which keep keys and values between calls."""

    def __init__(self, config, target, generator, module, with_head):
        # As attributes only: transformers 5 says otherwise what rotates than this code reads.
        self.config = types.SimpleNamespace(**{"pad_token_id": None, "pretraining_tp": 1,
                                               "rope_scaling": None, **config})
        self.model = module.Model(self.config, bias=config.get("bias", True)).eval()
        self.own_head = with_head
        randomize(self.model, generator)
        if not self.own_head:
            self.head = target.lm_head
        elif self.config.vocab_size == self.config.draft_vocab_size:
            del self.model.d2t, self.model.t2d  # As EaModel does.
        else:
            draw_vocabulary(self.model, generator)
        self.own_embeddings = config.get("target_hidden_size", TARGET["hidden_size"]) != \
            config["hidden_size"]
        if not self.own_embeddings:
            self.model.embed_tokens.weight.copy_(target.model.embed_tokens.weight)

    def logits(self, states):
        return self.model.lm_head(self.model.norm(states)) if self.own_head else self.head(states)

    def rows(self, tokens, taps):
        """Of all positions; those behind the first KEPT as after a round whose drafts are
        forgotten."""
        self.model.reset()
        first, self.kept = self.model(taps[None, :KEPT], tokens[None, :KEPT], use_cache=True)
        self.left = first[0, -1]
        rest = self.model(taps[None, KEPT:], tokens[None, KEPT:], past_key_values=self.kept,
                          use_cache=True)[0]
        return self.logits(torch.cat([first[0], rest[0]]))

    def tree(self, tokens, taps, drafted):
        states, logits, past, done = {-1: self.left}, {}, self.kept, []
        depth = lambda node: len(paths()[node])
        for level in range(1, max(map(depth, range(len(PARENTS)))) + 1):
            here = [node for node in range(len(PARENTS)) if depth(node) == level]
            done += here
            self.model.tree_mask = torch.tensor([[float(other in paths()[node]) for other in done]
                                                 for node in here])[None, None]
            out, past = self.model(
                torch.stack([states[PARENTS[node]] for node in here])[None],
                torch.tensor([[drafted[node] for node in here]]), past_key_values=past,
                position_ids=torch.full((len(here),), KEPT + level - 1), use_cache=True)
            for node, state in zip(here, out[0]):
                states[node], logits[node] = state, self.logits(state)
        return [logits[node] for node in range(len(PARENTS))]

    def save(self, folder, config):
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        tensors = dict(self.model.state_dict())
        if not self.own_embeddings:
            del tensors["embed_tokens.weight"]
        save(folder, tensors)


class Trained(Eagle):
    """The same network, as training/ writes it."""

    def __init__(self, fields, target, generator, module):
        from foretoken_train.kinds.eagle3 import Eagle3, Eagle3Config
        from foretoken_train.layers import LayerShape
        config = Eagle3Config(**{**fields, "shape": LayerShape(**fields["shape"])})
        super().__init__(config.as_json(), target, generator, module, with_head=True)
        self.network = Eagle3(config, torch.tensor(drafted_tokens(self)))
        self.network.load_state_dict({name: self.model.state_dict()[name]
                                      for name in self.network.state_dict()})

    def save(self, folder, _config):
        from foretoken_train.publish import write_drafter
        write_drafter(folder, self.network)


class Unrolled:
    """Classes that only train: each step runs over all positions, of which each sees the first
    step's and its own of the steps between. So a chain behind the KEPT positions is what the last of
    these computes step by step."""

    def rows(self, tokens, taps):
        return self.steps(tokens, taps, 1)[0]

    def tree(self, tokens, taps, drafted):
        logits = []
        for path in paths():
            fed = torch.cat([tokens[:KEPT], torch.tensor([drafted[node] for node in path])])
            nothing = torch.zeros(len(path), taps.shape[1])
            steps = self.steps(fed, torch.cat([taps[:KEPT], nothing]), len(path) + 1)
            logits.append(steps[-1][KEPT - 1])
        return logits


class SpecForge(Unrolled):
    def __init__(self, config, target, generator):
        from specforge.modeling.draft import llama3_eagle
        self.model = llama3_eagle.LlamaForCausalLMEagle3(transformers.LlamaConfig(**config))
        self.mask = llama3_eagle.prepare_decoder_attention_mask
        randomize(self.model, generator)
        draw_vocabulary(self.model, generator)
        self.model.embed_tokens.weight.copy_(target.model.embed_tokens.weight)

    def steps(self, tokens, taps, count):
        places = torch.arange(len(tokens))[None]
        states = self.model.project_hidden_states(taps[None])
        mask = self.mask(torch.ones(1, len(tokens), dtype=torch.bool), (1, len(tokens)), states, 0)
        kept, logits = [[], []], []
        for step in range(count):
            shifted = torch.cat([tokens[step:], tokens.new_zeros(step)])
            states = self.model.backbone(self.model.embed_input_ids(shifted[None]), states, kept,
                                         mask, places)
            logits.append(self.model.compute_logits(states)[0])
        return logits

    def save(self, folder, config):
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        save(folder, {name: tensor for name, tensor in self.model.state_dict().items()
                      if name != "embed_tokens.weight"})


class Speculators(Unrolled):
    def __init__(self, config, target, generator):
        from speculators.models.eagle3 import Eagle3SpeculatorConfig
        from speculators.models.eagle3.core import Eagle3DraftModel
        config = copy.deepcopy(config)
        layer = transformers.AutoConfig.for_model(**config.pop("transformer_layer_config"))
        layer._attn_implementation = "eager"
        self.model = Eagle3DraftModel(Eagle3SpeculatorConfig(transformer_layer_config=layer,
                                                             **config)).float()
        randomize(self.model, generator)
        if self.model.d2t is not None:
            draw_vocabulary(self.model, generator)

    def steps(self, tokens, taps, count):
        logits = []
        listening = self.model.lm_head.register_forward_hook(
            lambda _module, _inputs, output: logits.append(output[0]))
        # Positions begin at 1 there.
        self.model(taps[None], tokens[None], torch.zeros(1, len(tokens), dtype=torch.long),
                   ttt_steps=count)
        listening.remove()
        return logits

    def save(self, folder, config):
        save_pretrained(self.model, folder)


def drafted_tokens(drafter):
    offsets = getattr(drafter.model, "d2t", None)  # None as well where all are drafted.
    return (torch.arange(VOCABULARY) if offsets is None
            else offsets + torch.arange(len(offsets))).tolist()


class Mtp:
    """The layer that guesses further tokens, as speculators has it of transformers' layers; saved as
    models have it, or as speculators do."""

    def __init__(self, config, target, generator):
        from speculators.models.mtp import core, model_definitions
        self.config = copy.copy(target.config)
        definitions = model_definitions.mtp_model_classes[self.config.model_type]
        self.model = definitions.first_layer_class(self.config, layer_idx=0).eval()
        self.rotation = definitions.rotary_emb_class(self.config)
        self.places = core._prepare_mtp_position_ids
        self.target = target
        randomize(self.model, generator)

    def run(self, tokens, states, places, sees, cache):
        """`sees` [rows, positions]: which keys a row attends to."""
        own, rotated = self.places(places[None], len(places), self.config.model_type)
        return self.model(
            hidden_states=states[None], token_embeddings=self.target.model.embed_tokens(tokens)[None],
            attention_mask=torch.zeros(sees.shape).masked_fill(~sees, float("-inf"))[None, None],
            position_ids=own, position_embeddings=self.rotation(states[None], rotated),
            past_key_values=cache)[0]

    def rows(self, tokens, taps):
        cache = transformers.DynamicCache()
        sees = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
        places = torch.arange(len(tokens))
        first = self.run(tokens[:KEPT], taps[:KEPT], places[:KEPT], sees[:KEPT, :KEPT], cache)
        self.kept, self.left = copy.deepcopy(cache), first[-1]
        rest = self.run(tokens[KEPT:], taps[KEPT:], places[KEPT:], sees[KEPT:], cache)
        return self.target.lm_head(torch.cat([first, rest]))

    def tree(self, tokens, taps, drafted):
        """Node by node, over keys of all nodes before, of which it sees those of its path."""
        states, cache = {-1: self.left}, self.kept
        for node, path in enumerate(paths()):
            sees = torch.tensor([[True] * KEPT + [other in path for other in range(node + 1)]])
            states[node] = self.run(torch.tensor([drafted[node]]), states[PARENTS[node]][None],
                                    torch.tensor([KEPT + len(path) - 1]), sees, cache)[0]
        return [self.target.lm_head(states[node]) for node in range(len(PARENTS))]

    def save(self, folder, config):
        if config is None:
            return self.save_as_speculator(folder)
        names = {"input_proj": "fc", "final_layernorm": "norm",
                 "hidden_layernorm": "pre_fc_norm_hidden",
                 "token_layernorm": "pre_fc_norm_embedding"}
        renamed = lambda name: names.get(name.split(".")[0])
        save(folder, {
            f"mtp.{renamed(name)}.weight" if renamed(name) else f"mtp.layers.0.{name}": tensor
            for name, tensor in self.model.state_dict().items()})
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")

    def save_as_speculator(self, folder):
        from speculators.models.mtp import MTPDraftModel, MTPSpeculatorConfig
        whole = MTPDraftModel(MTPSpeculatorConfig(transformer_layer_config=self.config))
        whole.mtp_layers[0] = self.model
        del whole.verifier_lm_head
        save_pretrained(whole, folder)


class Dflash:
    """The class of DFlash's authors. That one gives all layers one mask, and those with windows are
    to see what stands before them only: so these get their own."""

    def __init__(self, config, target, generator):
        from dflash import model
        own = transformers.Qwen3Config(**config)
        own._attn_implementation = "eager"
        self.model = model.DFlashDraftModel(own).eval()
        self.window, self.target = config.get("sliding_window"), target
        randomize(self.model, generator)
        for layer in self.model.layers:
            if layer.self_attn.sliding_window is not None:
                layer.self_attn.register_forward_pre_hook(self.give_mask, with_kwargs=True)

    def give_mask(self, _module, inputs, named):
        rows = named["hidden_states"].shape[1]
        keys = torch.arange(named["target_hidden"].shape[1] + rows)
        apart = keys[-rows:, None] - keys
        sees = (apart >= 0) & (apart < self.window)
        named["attention_mask"] = torch.zeros(sees.shape).masked_fill(~sees, float("-inf"))[None, None]
        return inputs, named

    def block(self, taps, tokens):
        """Of the positions behind that of the last token, with the features of all before it; the
        first token has no row."""
        size = self.model.block_size
        tokens = torch.tensor([tokens[-1]] + [self.model.mask_token_id] * (size - 1))
        states = self.model(position_ids=torch.arange(len(taps) + size)[None],
                            noise_embedding=self.target.model.embed_tokens(tokens)[None],
                            target_hidden=taps[None])
        return self.target.lm_head(states[0, 1:])

    def save(self, folder, config):
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        save(folder, self.model.state_dict())


class SpeculatorsDflash:
    """As speculators trains it, with one block behind the position of each anchor."""

    CONFIG, MODEL = "DFlashSpeculatorConfig", "DFlashDraftModel"
    MODULE = "speculators.models.dflash"

    def __init__(self, config, target, generator):
        kind = importlib.import_module(self.MODULE)
        core = importlib.import_module(self.MODULE + ".core")
        config = copy.deepcopy(config)
        layer = transformers.AutoConfig.for_model(**config.pop("transformer_layer_config"))
        layer._attn_implementation = "eager"
        self.model = getattr(core, self.MODEL)(
            getattr(kind, self.CONFIG)(transformer_layer_config=layer, **config)).float()
        randomize(self.model, generator)
        if self.model.d2t is not None:
            draw_vocabulary(self.model, generator)
        self.model.embed_tokens.weight.copy_(target.model.embed_tokens.weight)
        self.target = target

    def states(self, taps, token):
        """[slots, hidden], as the head reads them."""
        size, places = self.model.block_size, len(taps)
        tokens = torch.tensor([token] + [self.model.mask_token_id] * (size - 1))
        states = self.model.embed_tokens(tokens)[None]
        context = self.model.hidden_norm(self.model.fc(taps[None]))
        rotation = self.model.rotary_emb(states, torch.arange(places + size)[None])
        for layer in self.model.layers:
            states = layer(hidden_states=states, target_hidden=context, position_embeddings=rotation)
        return self.model.norm(states)[0]

    def block(self, taps, tokens):
        return self.model.lm_head(self.states(taps, tokens[-1]))[1:]

    def save(self, folder, config):
        save_pretrained(self.model, folder)


class SpeculatorsDspark(SpeculatorsDflash):
    """Likewise, each slot with a token that is drafted before it."""

    CONFIG, MODEL = "DSparkSpeculatorConfig", "DSparkDraftModel"
    MODULE = "speculators.models.dspark"

    def block(self, taps, tokens, drafted):
        """Logits and confidences of the positions behind the last token and those that are drafted
        behind it, one by one."""
        path = torch.tensor([int(tokens[-1])] + drafted)
        states = self.states(taps, path[0])
        if not self.model.config.sample_from_anchor:
            states = states[1:]
        path = path[:len(states)]
        head = self.model.markov_head
        numbers = head.prev_embeddings(path)
        logits = self.model.lm_head(states) + head.block_bias(
            prev_token_ids=path[None], hidden_states=states[None])[0]
        read = ([states, numbers] if self.model.config.confidence_head_with_markov else [states])
        return logits, self.model.confidence_head(torch.cat(read, -1))


class Dspark:
    """The class of DSpark's authors, which keeps no keys and values here; saved with its own tables
    and configuration, or as SpecForge does."""

    def __init__(self, config, target, generator):
        from deepspec.modeling.dspark.qwen3.modeling import Qwen3DSparkModel
        own = {**config, **config.get("dflash_config", {})}
        own.setdefault("num_anchors", 1)
        self.shared = "dflash_config" in config
        configuration = transformers.Qwen3Config(**own)
        configuration._attn_implementation = "eager"
        self.model = Qwen3DSparkModel(configuration).eval()
        randomize(self.model, generator)
        if self.shared:
            self.model.initialize_embeddings_and_head(
                embed_tokens=target.model.embed_tokens, lm_head=target.lm_head)

    def block(self, taps, tokens, drafted):
        size = self.model.block_size
        path = torch.tensor([int(tokens[-1])] + drafted)[None, :size]
        block = torch.tensor([[path[0, 0]] + [self.model.mask_token_id] * (size - 1)])
        states = self.model._forward_backbone(
            position_ids=torch.arange(len(taps) + size)[None],
            noise_embedding=self.model.embed_tokens(block), target_hidden_states=taps[None])
        logits = self.model.compute_logits(states)
        if self.model.markov_head is not None:
            logits = self.model.markov_head.apply_block_logits(
                logits, token_ids=path, hidden_states=states)
        confidence = self.model.predict_confidence_step(states, path)
        return logits[0], None if confidence is None else confidence[0]

    def save(self, folder, config):
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        shared = ("embed_tokens.weight", "lm_head.weight") if self.shared else ()
        save(folder, {name: tensor for name, tensor in self.model.state_dict().items()
                      if name not in shared})


class InModel(Mtp):
    """The layer that guesses further tokens, as SGLang and vLLM compute it of models that keep its
    weights beside their own: norms of token and state, a projection of both, an ordinary layer, and
    a norm, whose output is the state that the next row reads."""

    # For each model_type: where published files have the layer, and the names of what it has beside
    # an ordinary one: norms of token and state, the projection, the last norm.
    NAMES = {
        "deepseek_v3": ("model.layers.{layers}.", "enorm", "hnorm", "eh_proj", "shared_head.norm"),
        "glm4_moe": ("model.layers.{layers}.", "enorm", "hnorm", "eh_proj", "shared_head.norm"),
        "mimo": ("model.mtp_layers.0.", "token_layernorm", "hidden_layernorm", "input_proj",
                 "final_layernorm"),
    }

    def __init__(self, config, target, generator):
        self.config = target.config
        self.target = target
        last = target.model.layers[-1]
        norm = lambda: type(target.model.norm)(self.config.hidden_size, self.config.rms_norm_eps)
        width = self.config.hidden_size
        self.model = torch.nn.ModuleDict({
            "token_norm": norm(), "state_norm": norm(), "output_norm": norm(),
            "join": torch.nn.Linear(2 * width, width, bias=False),
            "layer": type(last)(self.config, layer_idx=self.config.num_hidden_layers - 1)}).eval()
        self.model["layer"].self_attn.layer_idx = 0
        randomize(self.model, generator)

    def run(self, tokens, states, places, sees, cache):
        both = [self.model["token_norm"](self.target.model.embed_tokens(tokens)),
                self.model["state_norm"](states)]
        if self.config.model_type == "mimo":
            both.reverse()
        stream = self.model["join"](torch.cat(both, -1))[None]
        stream = self.model["layer"](
            stream, attention_mask=torch.zeros(sees.shape).masked_fill(~sees, float("-inf"))[None, None],
            position_ids=places[None], past_key_values=cache,
            position_embeddings=self.target.model.rotary_emb(stream, places[None]))
        return self.model["output_norm"](stream[0])

    def save(self, folder, config):
        prefix, *names = self.NAMES[self.config.model_type]
        prefix = prefix.format(layers=self.config.num_hidden_layers)
        tensors = dict(zip((f"{prefix}{name}.weight" for name in names), (
            self.model[own].weight for own in ("token_norm", "state_norm", "join", "output_norm"))))
        for name, tensor in self.model["layer"].state_dict().items():
            if name == "mlp.experts.gate_up_proj":
                for expert, both in enumerate(tensor):
                    gate, up = both.chunk(2)
                    tensors[f"{prefix}mlp.experts.{expert}.gate_proj.weight"] = gate
                    tensors[f"{prefix}mlp.experts.{expert}.up_proj.weight"] = up
            elif name == "mlp.experts.down_proj":
                for expert, down in enumerate(tensor):
                    tensors[f"{prefix}mlp.experts.{expert}.down_proj.weight"] = down
            else:
                tensors[prefix + name] = tensor
        save(folder, {name: tensor.clone() for name, tensor in tensors.items()})
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


class SpeculatorsPeagle:
    """As speculators trains it, with the masks behind one position."""

    DEPTHS = 5

    def __init__(self, config, target, generator):
        from speculators.models.peagle import PEagleSpeculatorConfig
        from speculators.models.peagle.core import PEagleDraftModel
        config = copy.deepcopy(config)
        layer = transformers.AutoConfig.for_model(**config.pop("transformer_layer_config"))
        layer._attn_implementation = "eager"
        self.model = PEagleDraftModel(PEagleSpeculatorConfig(transformer_layer_config=layer,
                                                             **config)).float()
        randomize(self.model, generator)
        if self.model.d2t is not None:
            draw_vocabulary(self.model, generator)

    def block(self, taps, tokens):
        masks = self.DEPTHS - 1
        fed = torch.cat([tokens, tokens.new_full((masks,), self.model.mask_token_id)])
        features = torch.cat([taps, self.model.mask_hidden[0].expand(masks, -1)])
        states = torch.cat([self.model.embed_tokens(fed), self.model.fc(features)], -1)[None]
        rotation = self.model.rotary_emb(states, torch.arange(len(fed))[None])
        sees = torch.ones(len(fed), len(fed), dtype=torch.bool).tril()
        mask = torch.zeros(sees.shape).masked_fill(~sees, float("-inf"))[None, None]
        for layer in self.model.layers:
            states = layer(states, attention_mask=mask, position_embeddings=rotation)
        return self.model.lm_head(self.model.norm(states))[0, -self.DEPTHS:]

    def save(self, folder, config):
        save_pretrained(self.model, folder)


class MedusaBlock(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return x + torch.nn.functional.silu(self.linear(x))


class Medusa:
    """Heads as Medusa's authors have them, saved as they published theirs with one block each, and
    otherwise as they save them since."""

    HEADS = 5  # Whatever the configuration says, which is less in what they published.

    def __init__(self, config, target, generator):
        width, vocabulary = TARGET["hidden_size"], VOCABULARY
        self.model = torch.nn.ModuleList(
            torch.nn.Sequential(*(MedusaBlock(width) for _ in range(config["medusa_num_layers"])),
                                torch.nn.Linear(width, vocabulary, bias=False))
            for _ in range(self.HEADS))
        randomize(self.model, generator)

    def block(self, taps, tokens):
        """Of what they read the last position only, the one before the last token's."""
        return torch.stack([head(taps[-1]) for head in self.model])

    def save(self, folder, config):
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        tensors = self.model.to(torch.bfloat16).state_dict()
        if config["medusa_num_layers"] == 1:
            torch.save(tensors, folder / "medusa_lm_head.pt")
        else:
            safetensors.torch.save_file(tensors, folder / "medusa_lm_head.safetensors")


class ExtraHeads:
    """Meta's heads of models that predict several tokens, by the formula of arXiv 2404.19737: layers
    beside the last one, which read what that reads; each has the last norm and the head behind it."""

    HEADS = 3

    def __init__(self, config, target, generator):
        self.target = target
        kind = type(target.model.layers[-1])
        self.model = torch.nn.ModuleList(kind(target.config, layer_idx=0)
                                         for _ in range(self.HEADS)).eval()
        randomize(self.model, generator)

    def block(self, taps, tokens):
        places = torch.arange(len(taps))[None]
        sees = torch.ones(len(taps), len(taps), dtype=torch.bool).tril()
        mask = torch.zeros(sees.shape).masked_fill(~sees, float("-inf"))[None, None]
        rotation = self.target.model.rotary_emb(taps[None], places)
        states = [layer(taps[None], attention_mask=mask, position_ids=places,
                        position_embeddings=rotation)[0][-1] for layer in self.model]
        return self.target.lm_head(self.target.model.norm(torch.stack(states)))

    def save(self, folder, config):
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        save(folder, {f"model.extra_heads.{name}": tensor
                      for name, tensor in self.model.state_dict().items()})


class HydraBlock(torch.nn.Module):
    """Over a state and the embeddings of so many tokens."""

    def __init__(self, width, tokens=0):
        super().__init__()
        self.linear = torch.nn.Linear((1 + tokens) * width, width)
        self.res_connection = (torch.nn.Linear((1 + tokens) * width, width) if tokens
                               else torch.nn.Identity())

    def forward(self, x):
        return self.res_connection(x) + torch.nn.functional.silu(self.linear(x))


class Hydra:
    """Modules as Hydra's authors have them, with one block for all but the first of a head, and of
    Hydra++ a model of one layer before them; saved as they publish them."""

    def __init__(self, config, target, generator):
        width, vocabulary = TARGET["hidden_size"], VOCABULARY
        count, layers = config["hydra_num_heads"], config["hydra_num_layers"]
        self.prefix = config["hydra_head_arch"] == "prefix-mlp"
        dropped = [torch.nn.Dropout(0.2)] if self.prefix else []
        one = lambda block: [*dropped, block]
        self.model = torch.nn.Module()
        self.model.hydra_mlp = torch.nn.ModuleList(
            torch.nn.Sequential(*one(HydraBlock(width, head + 1)),
                                *(one(HydraBlock(width)) * (layers - 1))) for head in range(count))
        linears = [torch.nn.Linear(width, vocabulary) for _ in range(count)]
        self.model.hydra_lm_head = torch.nn.ModuleList(
            torch.nn.Sequential(*one(linear)) if self.prefix else linear for linear in linears)
        if self.prefix:
            layer = copy.copy(target.config)
            layer.num_hidden_layers = 1
            self.model.prefix_embeding_layer = transformers.LlamaModel(layer)
        self.model.eval()
        randomize(self.model, generator)
        self.embed = target.model.embed_tokens

    def head(self, number, state, tokens):
        read = torch.cat([state, *(self.embed(token) for token in tokens)], -1)
        return self.model.hydra_lm_head[number](self.model.hydra_mlp[number](read))

    def rows(self, tokens, taps):
        self.states = taps
        if self.prefix:
            self.states = self.model.prefix_embeding_layer(inputs_embeds=taps[None])[0][0]
        return self.head(0, self.states, [tokens])

    def tree(self, tokens, taps, drafted):
        return [self.head(len(path), self.states[KEPT - 1],
                          [tokens[KEPT - 1], *(torch.tensor(drafted[node]) for node in path)])
                for path in paths()]

    def save(self, folder, config):
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        torch.save(self.model.to(torch.bfloat16).state_dict(), folder / "hydra_lm_head.pt")


def save_pretrained(model, folder):
    model.to(torch.bfloat16).save_pretrained(folder)
    model.float()
    for other in folder.iterdir():
        if other.name not in ("config.json", "model.safetensors", "golden.json"):
            other.unlink()


def save(folder, tensors):
    narrow = {name: tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor
              for name, tensor in tensors.items()}
    safetensors.torch.save_file(narrow, folder / "model.safetensors", {"format": "pt"})


def make(code, config, target, generator):
    if code in ("eagle3", "eagle1"):
        from eagle.model import cnets, cnets1
        return Eagle(config, target, generator, cnets if code == "eagle3" else cnets1,
                     with_head=code == "eagle3")
    if code == "trained":
        from eagle.model import cnets
        return Trained(config, target, generator, cnets)
    codes = {"specforge": SpecForge, "speculators": Speculators, "mtp": Mtp, "in_model": InModel,
             "dflash": Dflash, "speculators-dflash": SpeculatorsDflash,
             "speculators-peagle": SpeculatorsPeagle, "medusa": Medusa, "hydra": Hydra,
             "extra_heads": ExtraHeads, "speculators-dspark": SpeculatorsDspark, "dspark": Dspark}
    return codes[code](config, target, generator)


def origin(code):
    """What computed it: of repositories the commit, which the folder that they were put in tells."""
    if code == "in_model":  # The code here is written from these.
        return {"SGLang's deepseek_nextn.py": "0114f9c923f237b42b5a769a8370a71b8b1cee56",
                "vLLM's mimo_mtp.py": "0bb55d60cb667d2f4e263b55304a30b38fe2e55c"}
    if code == "medusa":  # The code here is written from it, which needs older transformers.
        return {"Medusa's medusa_model.py": "e2a5d20c048a9b0a4092e6933c34313687422518"}
    if code == "extra_heads":  # The code here is written from the paper's formula.
        return {}
    if code == "hydra":  # The code here is written from these.
        return {"Hydra's mlp_head.py and prefix_mlp_head.py":
                "3f39fbd2c22552e788b62dfd29a12b07ad63abfe"}
    if code in ("speculators", "mtp", "speculators-dflash", "speculators-peagle",
                "speculators-dspark"):
        return {"speculators": versions("speculators")["speculators"]}
    package, file = (("specforge", "SpecForge's llama3_eagle.py") if code == "specforge" else
                     ("dflash", "DFlash's model.py") if code == "dflash" else
                     ("deepspec", "DeepSpec's dspark/qwen3/modeling.py") if code == "dspark" else
                     ("eagle", "EAGLE's " + ("cnets1.py" if code == "eagle1" else "cnets.py")))
    where = pathlib.Path(next(iter(__import__(package).__path__))).parent
    return {file: (where / "COMMIT").read_text().strip()}


def sequential_blocks(drafter, begins, taps, tokens, drafted, numbers, folder, config):
    """Of drafters whose logits depend on the tokens before: a chain of these behind each."""
    blocks = []
    for begin in begins:
        logits, confidence = drafter.block(taps[:begin], tokens[1:begin + 1], drafted)
        blocks.append({"begin": begin, "path": [int(tokens[begin])] + drafted[:len(logits) - 1],
                       "logits": [numbers(row) for row in logits]})
        if confidence is not None:
            blocks[-1]["confidence"] = numbers(confidence)
    drafter.save(folder, config)
    print(f"  deviation {logits.std():.2f}")
    return blocks


def attempt(folder, name, seed):
    code, points, config = DRAFTERS[name]
    target_folder = TARGETS.get(name, "drafters/target")
    target = make_families.load(HERE / target_folder)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, VOCABULARY, (PROMPT + 1,), generator=generator)
    drafted = torch.randint(3, VOCABULARY, (len(PARENTS),), generator=generator).tolist()
    states = target(tokens[None, :-1], output_hidden_states=True).hidden_states
    # As it leaves the last layer the stream is not among these.
    layers = target.config.num_hidden_layers
    last = {}
    with contextlib.ExitStack() as stack:
        hook = target.model.norm.register_forward_pre_hook(
            lambda _module, inputs: last.update(stream=inputs[0]))
        stack.callback(hook.remove)
        target(tokens[None, :-1])
    pick = lambda point: (states[-1] if point < 0 else last["stream"] if point == layers
                          else states[point])[0]
    # Passes keep states in BF16.
    taps = torch.cat([pick(point) for point in points], -1).to(torch.bfloat16).float()
    drafter = make(code, config, target, generator)
    numbers = lambda values: [round(float(x), 5) for x in values]
    golden = {
        "made_with": {**versions("torch", "transformers"), **origin(code)}, "seed": seed,
        "target": target_folder, "points": points, "token_ids": tokens.tolist(),
        "drafted_ids": drafted_tokens(drafter), "taps": [[float(x) for x in row] for row in taps],
    }
    if hasattr(drafter, "block"):
        # Behind a prefill, after one of whose drafts some were accepted, and then none.
        begins = (KEPT, KEPT + 4, KEPT + 5)
        if "dspark" in code:
            return {**golden, "blocks": sequential_blocks(drafter, begins, taps, tokens, drafted,
                                                          numbers, folder, config)}
        blocks = [drafter.block(taps[:begin], tokens[1:begin + 1]) for begin in begins]
        drafter.save(folder, config)
        print(f"  deviation {blocks[0].std():.2f}")
        return {**golden, "blocks": [{"begin": begin, "logits": [numbers(row) for row in block]}
                                     for begin, block in zip(begins, blocks)]}
    rows = drafter.rows(tokens[1:], taps)
    nodes = drafter.tree(tokens[1:], taps, drafted)
    chain = torch.stack([nodes[node] for node in range(len(PARENTS))])
    again = drafter.rows(tokens[1:], taps)
    if float((again - rows).abs().max()) > MOST_ERROR:
        return "drafting has changed what follows"
    drafter.save(folder, config)
    print(f"  deviation {rows.std():.2f}, of the tree's {chain.std():.2f}")
    return {
        **golden, "logits": [numbers(row) for row in rows], "kept": KEPT,
        "nodes": [{"parent": parent, "token": token, "logits": numbers(row)}
                  for parent, token, row in zip(PARENTS, drafted, nodes)],
    }


def main():
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    folder = HERE / "drafters" / "target"
    folder.mkdir(parents=True, exist_ok=True)
    make_families.write_model(folder, TARGET, 1)
    write_each("drafters", sys.argv[1:] or DRAFTERS, attempt, SEEDS)


if __name__ == "__main__":
    main()
