"""A tokenizer for models that tests make."""

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
