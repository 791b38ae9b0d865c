"""The operations of a trace, in the order of computation: what each is, and which functions of the
ladder make it."""
import re

NORM = "02_normalization rms_norm_rows rms_norm_rows"
ROPE = "03_rope rope_rows rope_rows"
ATTENTION = ("06_gqa grouped_rows grouped_attention_rows", "06_gqa decode_attention attend_stretch",
             "04_causal_attention attention_rows attend_heads", "04_causal_attention attend attend",
             "04_causal_attention softmax_rows softmax_row", "05_kv_cache kv_cache append")
NETWORK = "07_swiglu feed_forward_rows feed_forward_rows"
BLOCK = "08_block block_rows block_rows"
EMBED = "09_language_model forward embed_tokens"
FORWARD = "09_language_model forward forward"
LOGITS = "09_language_model forward logits_of"
STORED = "10_pretrained dequantize dequantize_rows"

# The name in a trace -> in words, and CHAPTER PART FUNCTION of all that may make it, the likeliest
# first.
OPERATIONS = {
    "tokens": ("the text as tokens", "10_pretrained merges PairMerger::run"),
    "embedding": ("the tokens' rows of the embedding", EMBED, STORED),
    "attention_norm": ("the norm before attention", NORM, BLOCK),
    "q": ("the queries, before RoPE", BLOCK, STORED),
    "k": ("the keys, before RoPE", BLOCK, STORED),
    "v": ("the values", BLOCK, STORED),
    "q_rotated": ("the queries after RoPE", ROPE, FORWARD),
    "k_rotated": ("the keys after RoPE", ROPE, FORWARD),
    "heads": ("attention, each head's mean of the values", *ATTENTION, FORWARD),
    "attention": ("the heads times w_o", BLOCK, STORED),
    "post_attention_norm": ("the norm after attention", NORM, BLOCK),
    "x_plus_attention": ("the residual sum after attention", BLOCK),
    "feed_forward_norm": ("the norm before the feed-forward network", NORM, BLOCK),
    "gate": ("the network's gate", NETWORK, STORED),
    "up": ("the network's up", NETWORK, STORED),
    "hidden": ("act(gate) · up", "07_swiglu activation_rows gated_rows", NETWORK),
    "feed_forward": ("the network's result, times w_down", NETWORK, STORED),
    "post_feed_forward_norm": ("the norm after the network", NORM, BLOCK),
    "x_plus_feed_forward": ("the residual sum after the network", BLOCK),
    "final_norm": ("the norm after the last layer", NORM, LOGITS),
    "logits": ("the logits of the last token", LOGITS, STORED),
}
ORDER = list(OPERATIONS)
BEFORE_LAYERS = ("tokens", "embedding")


def split(name):
    """The layer, if there is one, and the operation: (3, "q_rotated") of "layer_3_q_rotated"."""
    found = re.fullmatch(r"layer_(\d+)_(\w+)", name)
    return (int(found.group(1)), found.group(2)) if found else (None, name)


def place_of(name):
    """What names are sorted by for the order of computation; those of no operation come last."""
    layer, operation = split(name)
    if operation not in ORDER:
        return 3, 0, 0
    stage = 1 if layer is not None else 0 if operation in BEFORE_LAYERS else 2
    return stage, layer or 0, ORDER.index(operation)


def in_words(name):
    """'layer 0, q_rotated (the queries after RoPE)'"""
    layer, operation = split(name)
    says = f" ({OPERATIONS[operation][0]})" if operation in ORDER else ""
    return ("" if layer is None else f"layer {layer}, ") + operation + says


def makers(name):
    """[(chapter, part, function), ...] of what may make an operation."""
    return [tuple(words.split()) for words in OPERATIONS.get(split(name)[1], ("",))[1:]]


def seen():
    """Every part of which a trace shows something."""
    return {maker[:2] for name in ORDER for maker in makers(name)}
