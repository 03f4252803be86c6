"""Which figures of an answer have no unit in their names."""

# What a number's key may end in, besides being a count of things.
SUFFIXES = (
    "_s", "_bytes", "_j", "_usd", "_usd_per_hour", "_w", "_percent", "_per_s",
    "_bytes_per_s", "_flops_per_s", "_per_byte",
)  # fmt: skip

COUNTS = {
    "accumulation", "batch", "data", "determined", "devices", "distinct_shapes", "epochs",
    "eval_samples", "fit_figures", "fits", "hosts", "inside", "largest", "largest_batch", "mean_length", "n",
    "parameters", "rows", "runs", "seed", "sequence_length", "steps_per_epoch",
    "ties", "train_samples", "trainable_parameters", "used", "vcpus",
    "with_interval", "without_interval",
    "fitted", "free_parameters", "global_batch", "inside_interval", "judged", "limits", "limits_met",
    "optimizer_launches", "per_step", "points", "ran_out", "ranks", "refused", "right", "seen_by_fit",
    "step_flops", "wrongly_fits", "wrongly_out",
    # Of the workload, as `trainfare list keys` has them.
    "base_bits", "checkpointed_blocks", "chunks", "compiler_level", "context",
    "convolution_channels", "convolution_layers", "convolution_reach", "decoder_layers",
    "delta_chunk", "delta_convolution", "delta_key_heads", "delta_key_size", "delta_rule_layers",
    "delta_value_heads", "delta_value_size", "dense_layers", "documents", "embedding_size",
    "expert", "expert_groups", "expert_groups_per_token", "expert_intermediate", "expert_period",
    "expert_tensor", "experts", "experts_per_token", "feed_forward_layers", "frozen_layers",
    "full_head_size", "full_key_value_heads", "layer_embedding_size", "layer_vocabulary",
    "shared_key_value_layers", "upper_intermediate",
    "head_size", "heads", "hidden", "intermediate", "key_value_heads", "labels",
    "expert_latent", "latent_key_value", "latent_query", "layers", "next_token_blocks",
    "position_offset", "positions", "predictions_per_sequence", "rank", "relative_buckets",
    "pipeline", "replicate", "ring_ranks", "rotary_head_size", "shared_intermediate", "state_bits", "target_length",
    "state_chunk", "state_convolution", "state_groups", "state_head_size", "state_heads",
    "state_size", "state_space_layers", "token_types",
    "unrotated_layers", "value_head_size", "vocabulary", "wide_blocks", "window",
    "windowed_layers",
}  # fmt: skip

# Shares of one, and errors whose unit docs/guide/commands.md gives.
SHARES = {
    "bandwidth_share", "best_probability", "dma", "dropout", "fitted_sigma", "interval", "limits_probability", "list_price_share",
    "load_factor", "log_sigma", "matrix_share", "mfu", "mfu_causal", "noise", "optimizer_busy_share", "prior_sigma", "ratio", "scalar", "score", "share",
    "source_log_sigma", "speed",
    "tensor", "vector",
}  # fmt: skip

ERRORS = {"bias", "coverage", "coverage_95", "mape", "max", "median", "p90"}

# Of published figures and keys of files, whose unit stands beside them.
PUBLISHED = {"error", "least", "measured", "most", "predicted", "predicted_high", "predicted_low",
             "prior"}


def has_unit(key):
    return key.endswith(SUFFIXES) or key in COUNTS | SHARES | ERRORS | PUBLISHED
