"""A tokenizer for the small models of tests/golden/families, which have none."""

import json

VOCABULARY = 128


def tokenizer():
    """Three special tokens, then one token for each character that text is made of."""
    letters = [chr(code) for code in range(33, 127)] + ["Ġ", "Ċ"]
    special = ["<pad>", "<s>", "</s>"]
    words = special + letters
    words += [a + b for a in "aeiou" for b in "nrstlm"][:VOCABULARY - len(words)]
    merges = [list(word) for word in words[len(special) + len(letters):]]
    return {
        "version": "1.0", "added_tokens": [
            {"id": i, "content": word, "special": True, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False} for i, word in enumerate(special)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {word: i for i, word in enumerate(words)},
                  "merges": merges}}


def write_tokenizer(folder):
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}))
