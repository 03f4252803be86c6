// Types of Transformers, and of code of their own, whose blocks the description
// in model/architecture.h cannot hold, by what of them it lacks.

#include <array>
#include <span>
#include <string_view>

#include "hardware/files/model_config_types.h"

namespace trainfare::hardware {
namespace {

constexpr std::string_view kDisentangled =
    "products of each score with relative positions (disentangled attention)";
constexpr std::string_view kIndexed =
    "sparse attention, whose indexer chooses what each token sees (DSA)";
constexpr std::string_view kFirstMamba = "state spaces of the first Mamba";
constexpr std::string_view kLightning =
    "linear attention in most blocks (lightning attention)";
constexpr std::string_view kDelta =
    "linear attention in most blocks (Kimi Delta Attention)";
constexpr std::string_view kGemma3n =
    "streams of its residual (AltUp) and products of low rank beside "
    "attention (LAuReL)";
constexpr std::string_view kSparse =
    "attention to a window and few tokens beside it";

constexpr auto kUncounted = std::to_array<UncountedType>({
    {"apertus1p5_text",
     "logits of fewer words than its table of tokens has",
     "apertus"},
    {"axk1", "norms behind the experts alone", "deepseek_v3"},
    {"bailing_hybrid", kDelta, "deepseek_v3"},
    {"bailing_moe_linear", kLightning, "bailing_moe"},
    {"big_bird", kSparse, "roberta"},
    {"bitnet", "norms within attention and feed-forward", "llama"},
    {"deberta", kDisentangled, "roberta"},
    {"deberta-v2", kDisentangled, "roberta"},
    {"deepseek_v32", kIndexed, "deepseek_v3"},
    {"deepseek_v4",
     "sparse attention to compressed tokens and streams of its residual "
     "(hyper-connections)",
     "deepseek_v3"},
    {"diffllama", "attention that is a difference of two", "llama"},
    {"eurobert", "words predicted by one matrix of their own", "modernbert"},
    {"falcon_h1",
     "attention and a state space side by side in a block",
     "granitemoehybrid"},
    {"falcon_mamba", kFirstMamba, "nemotron_h"},
    {"gemma3n_text", kGemma3n, "gemma4_text"},
    {"glm_moe_dsa", kIndexed, "glm4_moe_lite"},
    {"jamba", kFirstMamba, "granitemoehybrid"},
    {"kimi_linear", kDelta, "kimi_k2"},
    {"laguna",
     "other numbers of heads in blocks with windows, and a gate a head",
     "afmoe"},
    {"longcat_flash",
     "two of attention a block, and experts that do nothing",
     "deepseek_v3"},
    {"longformer", kSparse, "roberta"},
    {"mamba", kFirstMamba, "nemotron_h"},
    {"minimax", kLightning, "minimax_m2"},
    {"minimax_m3_vl_text",
     "sparse attention, whose indexer chooses what each token sees",
     "minimax_m2"},
    {"modernbert-decoder",
     "a dense layer and a norm before its words",
     "modernbert"},
    {"mpnet", "relative positions beside those of a table", "bert"},
    {"recurrent_gemma", "recurrences in most blocks (RG-LRU)", "gemma2"},
    {"rwkv", "recurrences in place of attention", ""},
    {"step3p5",
     "other numbers of heads in blocks with windows, and gates of attention's "
     "output",
     "glm4_moe"},
    {"switch_transformers", "experts of an encoder-decoder", "t5"},
    {"xlnet", "attention of two streams", "bert"},
    {"xlstm", "recurrences in place of attention", ""},
});

}  // namespace

std::span<const UncountedType> UncountedTypes() { return kUncounted; }

}  // namespace trainfare::hardware
