#include "hardware/files/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/files/config_json.h"
#include "hardware/files/model_config_types.h"
#include "hardware/files/text_file.h"
#include "model/error.h"
#include "model/nearest.h"
#include "model/validate.h"
#include "model/workload.h"

namespace trainfare::hardware {
namespace {

using model::Architecture;
using model::InputError;

// Keys that change no count of a step: names, tokens, labels, how text is
// generated, and what is computed within passes that are there anyway.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "architectures",
    "attn_implementation",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "cls_token_id",
    "decoder_start_token_id",
    "directionality",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "embd_pdrop",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "ep_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "force_bos_token_to_be_generated",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "id2label",
    "initializer_range",
    "is_llama_config",  // of files that came before the type had its name
    "label2id",
    "language",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "length_penalty",
    "mask_token_id",
    "max_length",
    "min_length",
    "model_type",
    "n_group",
    "no_repeat_ngram_size",
    "norm_eps",
    "norm_epsilon",
    "norm_topk_prob",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    // Transformers builds no such blocks; a scenario's next_token_blocks does.
    "num_nextn_predict_layers",
    "num_return_sequences",
    "original_max_position_embeddings",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_router_logits",
    "output_scores",
    "pad_token_id",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "query_pre_attn_scalar",
    "remove_invalid_values",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "return_dict_in_generate",
    "rms_norm_eps",
    "rope_interleave",
    "rope_interleaved",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "scoring_func",
    "sep_token_id",
    "seq_aux",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "top_k",
    "top_p",
    "topk_group",
    "topk_method",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "use_bfloat16",
    "use_cache",
});

// What begins with an underscore is Transformers' own ("_num_labels"), or a
// remark; two change a computation, which the types that have them ask for.
bool IsHarmless(std::string_view key) {
  return key.starts_with('_') ||
         std::find(kHarmless.begin(), kHarmless.end(), key) != kHarmless.end();
}

// How rotary positions reach beyond what a model was trained on, which changes
// no count. Names of Transformers' ROPE_INIT_FUNCTIONS, those that "longrope"
// and "yarn" had before, and Qwen's of images.
constexpr auto kRotations = std::to_array<std::string_view>({
    "deepseek_yarn",
    "default",
    "dynamic",
    "linear",
    "llama3",
    "longrope",
    "mrope",
    "proportional",
    "su",
    "yarn",
});

// `path`: of the map that names one.
void RequireKnownRotation(const ConfigJson& c,
                          const std::string& path,
                          const nlohmann::json& rotation) {
  if (!rotation.is_object()) c.Expected(path, "a map", rotation);
  const char* key = rotation.contains("rope_type") ? "rope_type" : "type";
  const auto kind = rotation.find(key);
  if (kind == rotation.end()) {
    c.Fail(fmt::format("{}.rope_type", path), std::string("missing"));
  }
  const std::string place = fmt::format("{}.{}", path, key);
  if (!kind->is_string()) c.Expected(place, "a text", *kind);
  const auto& name = kind->get_ref<const std::string&>();
  if (std::find(kRotations.begin(), kRotations.end(), name) ==
      kRotations.end()) {
    c.Fail(place,
           fmt::format(
               "unknown kind \"{}\"{}",
               name,
               model::OfKnown(name, {kRotations.begin(), kRotations.end()})));
  }
}

void RequireKnownRotations(const ConfigJson& c) {
  if (c.Has("rope_scaling")) {
    RequireKnownRotation(c, "rope_scaling", c.At("rope_scaling"));
  }
  // Transformers 5: with the base of the angles, or such a map a kind of block.
  if (!c.Has("rope_parameters")) return;
  const nlohmann::json& all = c.At("rope_parameters");
  if (!all.is_object()) c.Expected("rope_parameters", "a map", all);
  for (const auto& item : all.items()) {
    if (item.value().is_object()) {
      RequireKnownRotation(
          c, fmt::format("rope_parameters.{}", item.key()), item.value());
    }
  }
  if (all.contains("rope_type")) {
    RequireKnownRotation(c, "rope_parameters", all);
  }
}

// Every type, sorted by name.
std::vector<ModelType> AllTypes() {
  std::vector<ModelType> all;
  for (const auto types : {EncoderTypes(),
                           LlamaKinTypes(),
                           LayerNormDecoderTypes(),
                           ExpertDecoderTypes(),
                           LatentTypes(),
                           StateSpaceTypes(),
                           DeltaRuleTypes(),
                           ConvolutionTypes(),
                           FullAttentionTypes(),
                           OwnCodeTypes()}) {
    all.insert(all.end(), types.begin(), types.end());
  }
  std::sort(all.begin(), all.end(), [](const ModelType& a, const ModelType& b) {
    return a.type < b.type;
  });
  return all;
}

// Fields of a model by the keys that they are copied from, of each field those
// first that come with another name for the same, which is not read then.
constexpr auto kCopied =
    std::to_array<std::pair<std::string_view, const char*>>({
        {"convolution_reach", "conv_L_cache"},
        {"decoder_layers", "decoder_layers"},
        {"decoder_layers", "num_decoder_layers"},
        {"delta_convolution", "linear_conv_kernel_dim"},
        {"delta_key_heads", "linear_num_key_heads"},
        {"delta_key_size", "linear_key_head_dim"},
        {"delta_value_heads", "linear_num_value_heads"},
        {"delta_value_size", "linear_value_head_dim"},
        {"dense_layers", "first_k_dense_replace"},
        {"dense_layers", "mlp_only_layers"},
        {"dense_layers", "moe_layer_start_index"},
        {"dense_layers", "num_dense_layers"},
        {"embedding_size", "embedding_size"},
        {"embedding_size", "word_embed_proj_dim"},
        {"expert_intermediate", "moe_intermediate_size"},
        {"expert_intermediate", "intermediate_size"},
        {"experts", "num_experts"},
        {"experts", "num_local_experts"},
        {"experts", "moe_num_experts"},
        {"experts", "n_routed_experts"},
        {"experts_per_token", "num_experts_per_tok"},
        {"experts_per_token", "experts_per_token"},
        {"experts_per_token", "moe_k"},
        {"experts_per_token", "moe_topk"},
        {"expert_groups", "n_group"},
        {"expert_groups_per_token", "topk_group"},
        {"expert_latent", "moe_latent_size"},
        {"expert_period", "interleave_moe_layer_step"},
        {"head_size", "head_dim"},
        {"head_size", "d_kv"},
        {"head_size", "kv_channels"},
        {"full_head_size", "global_head_dim"},
        {"full_key_value_heads", "num_global_key_value_heads"},
        {"heads", "encoder_attention_heads"},
        {"heads", "n_head"},
        {"heads", "n_heads"},
        {"heads", "num_heads"},
        {"heads", "num_attention_heads"},
        {"hidden", "d_model"},
        {"hidden", "dim"},
        {"hidden", "n_embd"},
        {"hidden", "n_embed"},
        {"hidden", "hidden_size"},
        {"intermediate", "block_ff_dim"},
        {"intermediate", "d_ff"},
        {"intermediate", "encoder_ffn_dim"},
        {"intermediate", "ffn_dim"},
        {"intermediate", "ffn_hidden_size"},
        {"intermediate", "hidden_dim"},
        {"intermediate", "intermediate_size"},
        {"key_value_heads", "multi_query_group_num"},
        {"key_value_heads", "num_kv_heads"},
        {"key_value_heads", "num_key_value_heads"},
        {"latent_key_value", "kv_lora_rank"},
        {"latent_query", "q_lora_rank"},
        {"layer_embedding_size", "hidden_size_per_layer_input"},
        {"layer_vocabulary", "vocab_size_per_layer_input"},
        {"layers", "encoder_layers"},
        {"layers", "n_layer"},
        {"layers", "n_layers"},
        {"layers", "num_layers"},
        {"layers", "num_hidden_layers"},
        {"relative_buckets", "relative_attention_num_buckets"},
        {"rotary_head_size", "qk_rope_head_dim"},
        {"rotary_head_size", "rotary_dim"},
        {"shared_key_value_layers", "num_kv_shared_layers"},
        {"token_types", "type_vocab_size"},
        {"value_head_size", "v_head_dim"},
        {"vocabulary", "padded_vocab_size"},
        {"vocabulary", "vocab_size"},
        {"window", "attention_chunk_size"},
        {"window", "local_attention"},
        {"window", "sliding_window"},
    });

// The file's key of a field, or the one that it could have; nullptr where no
// one key says so much.
const char* KeyOf(const ConfigJson& c,
                  std::string_view field,
                  const std::vector<std::string_view>& asked) {
  for (const auto& [copy, key] : kCopied) {
    if (copy == field && c.Has(key)) return key;
  }
  for (const auto& [copy, key] : kCopied) {
    if (copy == field &&
        std::find(asked.begin(), asked.end(), key) != asked.end()) {
      return key;
    }
  }
  return nullptr;
}

// "expected a divisor of heads = 4, got 3" with the file's key of heads.
std::string WithKeys(const ConfigJson& c,
                     std::string message,
                     const std::vector<std::string_view>& asked) {
  constexpr std::string_view kSize = " = ";
  for (size_t at = message.find(kSize); at != std::string::npos;
       at = message.find(kSize, at + 1)) {
    const size_t begin = message.rfind(' ', at - 1) + 1;
    const std::string field = message.substr(begin, at - begin);
    const char* key = KeyOf(c, field, asked);
    if (key == nullptr) continue;
    message.replace(begin, field.size(), key);
    at = message.find(kSize, begin);
  }
  return message;
}

// Refuses dimensions that do not go together by the file's own keys, as long as
// these are known.
void RequireConsistent(const ConfigJson& c, const Architecture& a) {
  model::Workload workload;
  workload.architecture = a;
  try {
    model::Validate(workload);
  } catch (const InputError& error) {
    constexpr std::string_view kModel = "model.";
    std::string_view message = error.what();
    // Whatever else is a question of the job.
    if (!message.starts_with(kModel)) return;
    message.remove_prefix(kModel.size());
    const size_t end = std::min(message.find(": "), message.size());
    // Before it is looked for, which counts as asking.
    const std::vector<std::string_view> asked = c.Asked();
    const std::string said =
        WithKeys(c, std::string(message.substr(end)), asked);
    const char* key = KeyOf(c, message.substr(0, end), asked);
    if (key == nullptr) {
      throw InputError(
          c.path(), 0, 0, fmt::format("{}{}", message.substr(0, end), said));
    }
    c.Fail(fmt::format("{}{}{}",
                       key,
                       said,
                       c.Has(key) ? "" : ", as usual where it is not said"));
  }
}

std::string TypeOf(const ConfigJson& c) {
  std::string type = c.Text("model_type", "");
  if (type.empty()) c.Fail("model_type", "missing");
  return type;
}

const ModelType* FindType(const std::vector<ModelType>& types,
                          std::string_view type) {
  const auto row =
      std::find_if(types.begin(), types.end(), [&](const ModelType& known) {
        return known.type == type;
      });
  return row == types.end() ? nullptr : &*row;
}

// What a file of no language model is of, by keys that only such files have.
std::string_view OtherThanText(const ConfigJson& c) {
  for (const char* key : {"image_size", "patch_size", "vision_config"}) {
    if (c.Has(key)) return ", of images";
  }
  for (const char* key :
       {"audio_config", "feat_extract_norm", "num_mel_bins"}) {
    if (c.Has(key)) return ", of sound";
  }
  return "";
}

[[noreturn]] void RefuseType(const ConfigJson& c,
                             const std::vector<ModelType>& types,
                             const std::string& type) {
  for (const UncountedType& one : UncountedTypes()) {
    if (one.type != type) continue;
    c.Fail("model_type",
           fmt::format("type \"{}\" is not counted, for its {}{}",
                       type,
                       one.what,
                       one.nearest.empty()
                           ? ""
                           : fmt::format("; the nearest that is: \"{}\"",
                                         one.nearest)));
  }
  std::vector<std::string_view> known;
  for (const ModelType& one : types) known.push_back(one.type);
  c.Fail("model_type",
         fmt::format("unknown type \"{}\"{}{}{}",
                     type,
                     OtherThanText(c),
                     c.Has("auto_map") ? ", of code of its own (auto_map)" : "",
                     model::OfKnown(type, known, known.size())));
}

// One of these types, and nothing around it.
Architecture ReadTyped(const ConfigJson& c,
                       const std::vector<ModelType>& types) {
  if (c.Has("vision_config")) {
    c.Fail("vision_config",
           std::string("expected a language model, got one with images; the "
                       "text_config of such a file is read alone"));
  }
  const std::string type = TypeOf(c);
  const ModelType* const row = FindType(types, type);
  if (row == nullptr) RefuseType(c, types, type);
  Architecture a = row->read(c);
  // What every file may say.
  c.Expect("add_cross_attention", false);
  c.Expect("is_decoder", false);
  c.Expect("is_encoder_decoder", a.family == model::Family::kEncoderDecoder);
  c.Expect("pruned_heads", nlohmann::json::object());
  c.Expect("tie_encoder_decoder", false);
  if (a.family == model::Family::kEncoder) {
    c.Expect("tie_word_embeddings", true);
  }
  RequireKnownRotations(c);
  RefuseUnknown(c, type);
  a.name = c.Text("_name_or_path", type);
  if (a.name.empty()) a.name = type;
  // The blocks without a head of their own have the usual one.
  if (a.key_value_heads == a.heads) a.key_value_heads = 0;
  RequireConsistent(c, a);
  return a;
}

}  // namespace

void RefuseUnknown(const ConfigJson& c, std::string_view type) {
  for (const std::string& key : c.Unasked()) {
    if (IsHarmless(key)) continue;
    std::vector<std::string_view> known = c.Asked();
    known.insert(known.end(), kHarmless.begin(), kHarmless.end());
    c.Fail(key,
           fmt::format("not understood for model_type {}; it may change what a "
                       "step computes{}",
                       type,
                       model::DidYouMean(key, known)));
  }
}

void SetActivation(const ConfigJson& c,
                   const char* key,
                   std::string_view name,
                   Architecture& a) {
  if (name == "silu" || name == "swish") {
    a.activation = model::Activation::kSilu;
  } else if (name == "gelu") {
    a.activation = model::Activation::kGelu;
  } else if (name == "gelu_pytorch_tanh") {
    a.activation = model::Activation::kGeluTanh;
  } else if (name == "gelu_new" || name == "gelu_fast") {
    a.activation = model::Activation::kGeluNew;
  } else if (name == "relu") {
    a.activation = model::Activation::kRelu;
  } else if (name == "relu2") {
    a.activation = model::Activation::kReluSquared;
  } else if (name == "xielu") {
    a.activation = model::Activation::kXielu;
  } else {
    c.Fail(
        key,
        fmt::format(
            "expected silu, gelu, gelu_pytorch_tanh, gelu_new, relu, relu2 or "
            "xielu, got {}",
            name));
  }
}

void ReadSizes(const ConfigJson& c,
               Architecture& a,
               const Architecture& usual) {
  const auto read = [&](const char* key, int64_t Architecture::*size) {
    a.*size = usual.*size > 0 ? c.Count(key, usual.*size) : c.Count(key);
  };
  // Readers divide by heads, and to a model no positions are any number.
  const auto read_positive = [&](const char* key, int64_t Architecture::*size) {
    a.*size = usual.*size > 0 ? c.PositiveCount(key, usual.*size)
                              : c.PositiveCount(key);
  };
  read("num_hidden_layers", &Architecture::layers);
  read("hidden_size", &Architecture::hidden);
  read_positive("num_attention_heads", &Architecture::heads);
  read("intermediate_size", &Architecture::intermediate);
  read("vocab_size", &Architecture::vocabulary);
  read_positive("max_position_embeddings", &Architecture::positions);
}

void ReadActivation(const ConfigJson& c,
                    const char* key,
                    const char* fallback,
                    Architecture& a) {
  SetActivation(c, key, c.Text(key, fallback), a);
}

void ExpectDropout(const ConfigJson& c,
                   const char* key,
                   double fallback,
                   const CountedDropout& counted) {
  const double share = c.Share(key, fallback);
  const bool drops = counted.share > 0;
  if ((share > 0) == drops) return;
  c.Fail(key,
         fmt::format("expected {} as {}, got {}{}; one share is counted for "
                     "both",
                     drops ? "a share above 0" : "0",
                     counted.key,
                     share,
                     c.Has(key) ? "" : ", of its class"));
}

void ExpectDropoutOrNone(const ConfigJson& c,
                         const char* key,
                         double fallback,
                         const CountedDropout& counted) {
  if (c.Share(key, fallback) > 0) ExpectDropout(c, key, fallback, counted);
}

void Ignore(const ConfigJson& c, std::initializer_list<const char*> keys) {
  for (const char* key : keys) c.Has(key);
}

std::string ModelConfigText(const std::string& path) {
  return ReadTextFile(path, "a config.json", kLargestByHand);
}

model::Architecture ReadModelConfig(const std::string& path) {
  return ParseModelConfig(ModelConfigText(path), path);
}

namespace {

// Whether a model and the language model in it share one matrix of embeddings,
// where the file says it of the whole. Versions of Transformers read the one or
// the other, so that both have to agree.
void ReadTiesOfWhole(const ConfigJson& whole,
                     const ConfigJson& inner,
                     Architecture& a) {
  constexpr const char* kTied = "tie_word_embeddings";
  if (!whole.Has(kTied)) return;
  const bool tied = whole.Flag(kTied, true);
  if (inner.Has(kTied) && inner.Flag(kTied, true) != tied) {
    whole.Fail(
        kTied,
        fmt::format("expected {} as in text_config, got {}", !tied, tied));
  }
  a.untied_output = !tied;
}

}  // namespace

model::Architecture ParseModelConfig(std::string text,
                                     const std::string& path) {
  constexpr const char* kOtherwise = "nothing else is counted";
  constexpr const char* kText = "text_config";
  const ConfigJson config(text, path, kOtherwise);
  const std::vector<ModelType> types = AllTypes();
  const std::string type = TypeOf(config);
  if (FindType(types, type) == nullptr && config.Has(kText)) {
    const ConfigJson inner(std::move(text), path, kOtherwise, kText);
    Architecture a = ReadTyped(inner, types);
    if (a.family != model::Family::kDecoder) {
      inner.Fail("model_type",
                 fmt::format("expected a language model, got {}", a.name));
    }
    ReadTiesOfWhole(config, inner, a);
    a.name += fmt::format(" (of {}, without what is around it)", type);
    return a;
  }
  return ReadTyped(config, types);
}

}  // namespace trainfare::hardware
