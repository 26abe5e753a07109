#!/usr/bin/env python3
"""Tokenizers in GGUF files against the Python packages `tokenizers` and `sentencepiece`, id for id:
gguf_tokenizer_test.py TOKENIZE SHARED_DATA BUILD_FOLDER. The files are written by the package
`gguf` from real tokenizers, as the converters of models do, and from GPT-2's vocabulary with the
words of every family."""

import base64
import functools
import json
import pathlib
import random
import struct
import subprocess
import sys
import unicodedata

SOURCE = pathlib.Path(__file__).parent
sys.path.append(str(SOURCE.parent))
from python_packages import SKIPPED, run_with

STRINGS = 10_000
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

# What the families' tokenizer.json files say: patterns of Split steps, and steps of other kinds.
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s")
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
ENDS = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + ENDS
QWEN2 = LLAMA3.replace("{1,3}", "")
KIMI = (r"[\p{Han}]+|" + CASED.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]")
        % (SHORT + "?", SHORT + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + ENDS)
LETTERS = ("\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷ"
           "ᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-"
           "ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻"
           "𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")
ASIAN = "[一-龥ࠀ-一가-\ud7ff]+"
FAMILIES = {
    "llama-bpe": [LLAMA3],
    "dbrx": [LLAMA3],
    "qwen2": [QWEN2],
    "qwen35": [SHORT + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
               r"|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + ENDS],
    "gpt-2": ["bytes"],
    "olmo": ["bytes"],
    "smollm": ["digits", "bytes"],
    "command-r": ["digits", "bytes"],
    "gpt-4o": [CASED % (SHORT + "?", SHORT + "?")
               + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + ENDS],
    "tekken": [CASED % ("", "") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + ENDS],
    "kimi-k2": [KIMI],
    "seed-coder": [SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + ENDS],
    "deepseek-llm": ["[\r\n]", LETTERS, r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", ASIAN, "digits"],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", ASIAN, "digits"],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
                    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" + ENDS],
    "falcon": ["punctuation", "bytes", "numbers", "[0-9][0-9][0-9]"],
    "falcon3": ["punctuation", "bytes", "digits"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}
NFC = {"qwen2", "qwen35", "olmo", "command-r"}
WHOLE_WORDS_FIRST = {"llama-bpe", "tekken", "kimi-k2"}


@functools.cache
def assigned_characters():
    """Of Unicode as Python knows it: younger characters differ between libraries, and so does the
    order of younger combining marks."""
    old = unicodedata.ucd_3_2_0
    return [c for c in map(chr, range(0x110000))
            if unicodedata.category(c) not in ("Cn", "Cs", "Co")
            and not (unicodedata.combining(c) and old.category(c) == "Cn")]


def random_strings(special, seed):
    """Texts of every kind: words, code, digits, white space, any characters, special tokens."""
    choose = random.Random(seed)
    assigned = assigned_characters()
    words = ("the quick brown fox Don't we'll I'VE they're naïve Über Straße ΣΊΣΥΦΟΣ привет мир "
             "你好世界 こんにちは 안녕하세요 नमस्ते สวัสดี مرحبا שלום été e\u0301te\u0301 camelCase "
             "HTTPServer snake_case x86-64 foo(bar) => != ++i; /* */ // # \"quoted\" 'single' <b> "
             "</b> &amp;").split()
    pieces = [
        lambda: choose.choice(words),
        lambda: " " + choose.choice(words),
        lambda: choose.choice([" ", "  ", "\n", "\n\n", "\r\n", "\t", " \n ", "\u00a0", "\u3000"]),
        lambda: str(choose.randrange(10 ** choose.randint(1, 12))),
        lambda: choose.choice("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~‘’“”…。、！？"),
        lambda: choose.choice(assigned),
        lambda: chr(choose.randint(0x20, 0x17F)),
        lambda: choose.choice(["'s", "'S", "'ll", "'RE", "'", "''", "'d've"]),
        lambda: choose.choice(["😀", "👩‍👩‍👧", "e\u0301", "\u0300", "½", "²", "Ⅻ", "٣", "ǅ", "ʰ"]),
    ]
    if special:
        pieces.append(lambda: choose.choice(special))
    texts = ["", " ", "  ", "\n"]
    while len(texts) < STRINGS:
        texts.append("".join(choose.choice(pieces)() for _ in range(choose.randint(1, 24))))
    return texts


class Vocabulary:
    """What a GGUF file says of a tokenizer."""

    def __init__(self, model, pre, tokens, types, scores=None, merges=None, **keys):
        self.model, self.pre, self.tokens, self.types = model, pre, tokens, types
        self.scores, self.merges, self.keys = scores, merges, keys

    def write(self, path):
        import gguf
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_tokenizer_model(self.model)
        writer.add_tokenizer_pre(self.pre)
        writer.add_token_list(self.tokens)
        writer.add_token_types(self.types)
        if self.scores is not None:
            writer.add_token_scores(self.scores)
        if self.merges is not None:
            writer.add_token_merges(self.merges)
        for key, value in self.keys.items():
            add = writer.add_bool if isinstance(value, bool) else writer.add_uint32
            add(f"tokenizer.ggml.{key}", value)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        return path

    def special(self):
        return [token for token, kind in zip(self.tokens, self.types) if kind == CONTROL]


def tokenize(source, texts, parse_special=True):
    """Fingerprint, bos, eos and the ids of every text, by our program."""
    records = b"".join(
        struct.pack("<BI", parse_special, len(text)) + text for text in (t.encode() for t in texts))
    result = subprocess.run([sys.argv[1], source], input=records, capture_output=True)
    if result.returncode != 0:
        sys.exit(f"{source}: {result.stderr.decode()}")
    lines = result.stdout.decode().splitlines()
    return lines[0], lines[1], lines[2], [[int(i) for i in line.split()] for line in lines[3:]]


def compare(name, texts, got, wanted):
    if len(got) != len(texts):
        sys.exit(f"{name}: {len(got)} of {len(texts)} texts came back")
    wrong = [i for i in range(len(texts)) if got[i] != wanted[i]]
    if wrong:
        at = wrong[0]
        sys.exit(f"{name}: {len(wrong)} of {len(texts)} texts differ; the first is {texts[at]!r}: "
                 f"{got[at]}, not {wanted[at]}")
    print(f"{name}: {len(texts)} texts equal", flush=True)


def compare_folder(name, source, texts, got):
    """Compares all that `tokenize` says of a file with what it says of a folder."""
    ours = tokenize(source, texts)
    if ours[:3] != got[:3]:
        sys.exit(f"{name}: fingerprint, bos and eos are {got[:3]}, the folder's {ours[:3]}")
    compare(f"{name}, folder", texts, got[3], ours[3])


def ids_of(reference, texts):
    return [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]


def with_pre(source, pre, path):
    """The same file with other words, without that all else is written again."""
    data = source.read_bytes()
    key = b"tokenizer.ggml.pre" + struct.pack("<I", 8)  # The type is string.
    at = data.index(key) + len(key)
    (length,) = struct.unpack_from("<Q", data, at)
    path.write_bytes(data[:at] + struct.pack("<Q", len(pre)) + pre.encode() +
                     data[at + 8 + length:])
    return path


def check(name, vocabulary, reference, folder, seed, source=None):
    """Compares with the tokenizer `reference`, and with ours of the folder `source`."""
    texts = random_strings(vocabulary.special(), seed)
    got = tokenize(vocabulary.write(folder / f"{name}.gguf"), texts)
    compare(name, texts, got[3], ids_of(reference, texts))
    if source is not None:
        compare_folder(name, source, texts, got)


def bpe(vocabulary, merges, pre, added):
    """A byte-level tokenizer of a family, by `tokenizers`."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=pre in WHOLE_WORDS_FIRST))
    kinds = {"punctuation": pre_tokenizers.Punctuation("contiguous"),
             "digits": pre_tokenizers.Digits(individual_digits=True),
             "numbers": pre_tokenizers.Digits(individual_digits=False),
             "bytes": pre_tokenizers.ByteLevel(add_prefix_space=False)}
    steps = [kinds[step] if step in kinds else pre_tokenizers.Split(Regex(step), "isolated")
             for step in FAMILIES[pre]]
    if "bytes" not in FAMILIES[pre]:
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    if pre in NFC:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in added])
    return tokenizer


def by_id(ids):
    tokens = [None] * (max(ids.values()) + 1)
    for text, number in ids.items():
        tokens[number] = text
    return tokens


def from_tokenizer_json(path, pre, **keys):
    data = json.loads(path.read_text())
    tokens = by_id(data["model"]["vocab"])
    types = [NORMAL] * len(tokens)
    for token in data["added_tokens"]:
        types[token["id"]] = CONTROL if token["special"] else USER_DEFINED
    merges = [merge if isinstance(merge, str) else " ".join(merge)
              for merge in data["model"]["merges"]]
    return Vocabulary("gpt2", pre, tokens, types, merges=merges, **keys)


def spell_bytes():
    """The byte alphabet: a character for each byte."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {byte: chr(byte) for byte in visible}
    for byte in range(256):
        alphabet.setdefault(byte, chr(256 + len(alphabet) - len(visible)))
    return alphabet


def merges_by_cuts(ranks):
    """Every cut of every token into two, by the rank of the token."""
    merges = []
    for token in sorted(ranks, key=ranks.get):
        cuts = [(token[:i], token[i:]) for i in range(1, len(token))]
        cuts = [cut for cut in cuts if cut[0] in ranks and cut[1] in ranks]
        merges += sorted(cuts, key=lambda cut: (ranks[cut[0]], ranks[cut[1]]))
    return merges


def check_gpt2(data, folder):
    from tokenizers import Tokenizer
    path = data / "tokenizers" / "gpt2" / "tokenizer.json"
    vocabulary = from_tokenizer_json(path, "gpt-2", bos_token_id=50256, eos_token_id=50256)
    check("gpt2", vocabulary, Tokenizer.from_file(str(path)), folder, 1, path.parent)
    # The words of every family, with GPT-2's vocabulary, by the same texts.
    data = json.loads(path.read_text())
    merges = [tuple(merge.split(" ")) for merge in data["model"]["merges"]]
    texts = random_strings(vocabulary.special(), 100)
    for pre in FAMILIES:
        file = with_pre(folder / "gpt2.gguf", pre, folder / f"words of {pre}.gguf")
        reference = bpe(data["model"]["vocab"], merges, pre, ["<|endoftext|>"])
        compare(f"words of {pre}", texts, tokenize(file, texts)[3], ids_of(reference, texts))


def check_smollm2(data, folder):
    from tokenizers import Tokenizer
    path = data / "tokenizers" / "smollm2" / "tokenizer.json"
    vocabulary = from_tokenizer_json(path, "smollm")
    check("smollm2", vocabulary, Tokenizer.from_file(str(path)), folder, 2, path.parent)


def check_qwen2(data, folder):
    source = data / "tokenizers" / "qwen2"
    ids = json.loads((source / "vocab.json").read_text())
    merges = [line for line in (source / "merges.txt").read_text().splitlines()
              if line and not line.startswith("#version")]
    config = json.loads((source / "tokenizer_config.json").read_text())
    added = {token["content"]: int(number)
             for number, token in config["added_tokens_decoder"].items()}
    tokens = by_id({**ids, **added})
    # A model's output is larger than its vocabulary: converters fill the rest.
    types = [CONTROL if token in added else NORMAL for token in tokens]
    padded = tokens + [f"[PAD{i}]" for i in range(len(tokens), 151936)]
    types += [UNUSED] * (len(padded) - len(tokens))
    vocabulary = Vocabulary("gpt2", "qwen2", padded, types, merges=merges,
                            eos_token_id=added["<|im_end|>"], add_bos_token=False)
    reference = bpe(ids, [tuple(merge.split(" ")) for merge in merges], "qwen2", list(added))
    check("qwen2", vocabulary, reference, folder, 3, source)


def check_llama3(data, folder):
    source = data / "tokenizers" / "llama3"
    alphabet = spell_bytes()
    ranks = {}
    for line in (source / "tokenizer.model").read_text().splitlines():
        token, rank = line.split()
        ranks["".join(alphabet[byte] for byte in base64.b64decode(token))] = int(rank)
    merges = merges_by_cuts(ranks)
    named = ["begin_of_text", "end_of_text", *(f"reserved_special_token_{i}" for i in range(4)),
             "start_header_id", "end_header_id", "reserved_special_token_4", "eot_id",
             *(f"reserved_special_token_{i}" for i in range(5, 251))]
    added = [f"<|{name}|>" for name in named]
    vocabulary = Vocabulary("gpt2", "llama-bpe", by_id(ranks) + added,
                            [NORMAL] * len(ranks) + [CONTROL] * len(added),
                            merges=[" ".join(merge) for merge in merges],
                            bos_token_id=len(ranks), eos_token_id=len(ranks) + 9)
    check("llama3", vocabulary, bpe(ranks, merges, "llama-bpe", added), folder, 4, source)


def from_sentencepiece(path, **keys):
    """As the converters read such a model: they cannot tell user-defined pieces from others."""
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    tokens, types = [], []
    for i in range(model.vocab_size()):
        tokens.append(model.id_to_piece(i))
        kind = NORMAL
        for test, other in [(model.is_unknown, UNKNOWN), (model.is_control, CONTROL),
                            (model.is_unused, UNUSED), (model.is_byte, BYTE)]:
            kind = other if test(i) else kind
        types.append(kind)
    scores = [model.get_score(i) for i in range(model.vocab_size())]
    return model, Vocabulary("llama", "default", tokens, types, scores, **keys)


def check_sentencepiece(data, folder):
    from tokenizers import AddedToken, Tokenizer, models, normalizers
    for seed, name in enumerate(["llama2", "demo-target", "stories260K"], 5):
        source = data / ("tokenizers" if name == "llama2" else "models") / name
        keys = {"remove_extra_whitespaces": True} if name == "stories260K" else {}
        model, vocabulary = from_sentencepiece(source / "tokenizer.model", **keys)
        texts = random_strings(vocabulary.special(), seed)
        path = vocabulary.write(folder / f"{name}.gguf")
        if name != "demo-target":  # Whose marks the library always recognises.
            compare(f"{name}, sentencepiece", texts,
                    tokenize(path, texts, parse_special=False)[3], model.encode(texts))
        got = tokenize(path, texts)
        compare_folder(name, source, texts, got)
        if name != "llama2":
            continue
        # Hugging Face's form of the same model: merges by score, a space before every text.
        scores = dict(zip(vocabulary.tokens, vocabulary.scores))
        ranks = {token: i for i, token in enumerate(vocabulary.tokens)}
        merges = [(scores[token], token[:i], token[i:]) for token in ranks
                  for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        merges.sort(key=lambda merge: -merge[0])
        reference = Tokenizer(models.BPE(ranks, [merge[1:] for merge in merges], unk_token="<unk>",
                                         fuse_unk=True, byte_fallback=True))
        reference.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        reference.add_special_tokens(
            [AddedToken(token, normalized=False) for token in vocabulary.special()])
        compare(name, texts, got[3], ids_of(reference, texts))
        check_characters(reference, vocabulary.special(), folder)


def check_characters(reference, special, folder):
    """Every way in which a tokenizer.json of characters with bytes behind them says what becomes of
    spaces; and that of Gemma 4 in a GGUF file."""
    from tokenizers import decoders, normalizers, pre_tokenizers
    marks, show = normalizers.Replace(" ", "▁"), decoders.Replace("▁", " ")
    shown = [show, decoders.ByteFallback(), decoders.Fuse()]
    stripped = decoders.Sequence([*shown, decoders.Strip(" ", 1, 0)])
    metaspace = pre_tokenizers.Metaspace
    forms = {
        "before each": (reference.normalizer, None, stripped),
        "first": (None, metaspace(prepend_scheme="first", split=False), stripped),
        "always": (None, metaspace(prepend_scheme="always", split=False), stripped),
        "words": (None, metaspace(prepend_scheme="first", split=True), stripped),
        "never": (None, metaspace(prepend_scheme="never", split=False), decoders.Sequence(shown)),
        "gemma": (marks, pre_tokenizers.Split(" ", "merged_with_previous"),
                  decoders.Sequence(shown))}
    for seed, (name, (normalizer, pre_tokenizer, decoder)) in enumerate(forms.items(), 200):
        reference.decoder = decoder
        data = json.loads(reference.to_str())
        data["normalizer"] = normalizer and json.loads(normalizer.__getstate__())
        data["pre_tokenizer"] = pre_tokenizer and json.loads(pre_tokenizer.__getstate__())
        form = type(reference).from_str(json.dumps(data))
        source = folder / f"characters {name}"
        source.mkdir(exist_ok=True)
        form.save(str(source / "tokenizer.json"))
        texts = random_strings(special, seed)
        got = tokenize(source, texts)
        compare(f"characters, {name}", texts, got[3],
                [e.ids for e in form.encode_batch(texts, add_special_tokens=False)])
    merges = [" ".join(merge) for merge in data["model"]["merges"]]
    tokens = by_id(data["model"]["vocab"])
    types = [CONTROL if token in special else BYTE if token.startswith("<0x") else NORMAL
             for token in tokens]
    vocabulary = Vocabulary("gemma4", "default", tokens, types, [0.0] * len(tokens), merges,
                            bos_token_id=1, eos_token_id=2, add_bos_token=False)
    got = tokenize(vocabulary.write(folder / "gemma4.gguf"), texts)
    compare("gemma4", texts, got[3],
            [e.ids for e in form.encode_batch(texts, add_special_tokens=False)])


def check_vectors(data):
    """Files and ids that others made."""
    for name, file in [("gpt-2", "ggml-vocab-gpt-2"), ("llama-spm", "ggml-vocab-llama-spm")]:
        vectors = data / "tokenizers" / "vectors"
        texts = (vectors / f"{name}.inp").read_text().split("\n__ggml_vocab_test__\n")[:-1]
        wanted = [[int(i) for i in line.split()]
                  for line in (vectors / f"{name}.out").read_text().splitlines()]
        got = tokenize(data / "tokenizers" / "gguf" / f"{file}.gguf", texts, parse_special=False)
        compare(f"{file}, vectors", texts, got[3], wanted)


def main():
    data, folder = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    check_vectors(data)
    for run in (check_sentencepiece, check_gpt2, check_smollm2, check_qwen2, check_llama3):
        run(data, folder)


if __name__ == "__main__":
    if not (pathlib.Path(sys.argv[2]) / "tokenizers").exists():
        print("skipped: the shared test data are not here")
        sys.exit(SKIPPED)
    run_with(pathlib.Path(sys.argv[3]), SOURCE / "requirements.txt")
    main()
