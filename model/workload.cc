#include "model/workload.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/letters.h"
#include "model/nearest.h"

namespace trainfare::model {
namespace {

constexpr std::array<std::pair<std::string_view, bool LoraMatrices::*>, 26>
    kLoraMatrices = {{
        {"query", &LoraMatrices::query},
        {"key", &LoraMatrices::key},
        {"value", &LoraMatrices::value},
        {"output", &LoraMatrices::output},
        {"attention_gate", &LoraMatrices::attention_gate},
        {"feed_forward_gate", &LoraMatrices::feed_forward_gate},
        {"feed_forward_in", &LoraMatrices::feed_forward_in},
        {"feed_forward_out", &LoraMatrices::feed_forward_out},
        {"query_down", &LoraMatrices::query_down},
        {"query_up", &LoraMatrices::query_up},
        {"key_value_down", &LoraMatrices::key_value_down},
        {"key_value_up", &LoraMatrices::key_value_up},
        {"state_space_in", &LoraMatrices::state_space_in},
        {"state_space_out", &LoraMatrices::state_space_out},
        {"delta_rule_in", &LoraMatrices::delta_rule_in},
        {"delta_rule_gate", &LoraMatrices::delta_rule_gate},
        {"delta_rule_write", &LoraMatrices::delta_rule_write},
        {"delta_rule_decay", &LoraMatrices::delta_rule_decay},
        {"delta_rule_out", &LoraMatrices::delta_rule_out},
        {"convolution_in", &LoraMatrices::convolution_in},
        {"convolution_out", &LoraMatrices::convolution_out},
        {"expert_latent_in", &LoraMatrices::expert_latent_in},
        {"expert_latent_out", &LoraMatrices::expert_latent_out},
        {"layer_gate", &LoraMatrices::layer_gate},
        {"layer_projection", &LoraMatrices::layer_projection},
        {"layer_embeddings", &LoraMatrices::layer_embeddings},
    }};

// Names of modules whose matrices hang on the model (NameUsualMatrices).
constexpr std::array<std::pair<std::string_view, bool LoraMatrices::*>, 3>
    kModulesOfModel = {{{"in_proj", &LoraMatrices::in_proj},
                        {"out_proj", &LoraMatrices::out_proj},
                        {"gate_proj", &LoraMatrices::gate_proj}}};

// Names of modules in Transformers, Meta's and MosaicML's models, and PEFT's
// words for all; a module that makes several has a row for each. Left out is
// what is one matrix here and another there (T5's and Llama's "wo", "dense").
struct LoraModule {
  std::string_view name;
  std::string_view matrix;
};
constexpr auto kLoraModules = std::to_array<LoraModule>({
    {"all-linear", "all"},
    {"all_linear", "all"},
    {"q_proj", "query"},
    {"k_proj", "key"},
    {"v_proj", "value"},
    {"o_proj", "output"},
    {"in_proj_qkvz", "delta_rule_in"},
    {"in_proj_qkv", "delta_rule_in"},
    {"in_proj_z", "delta_rule_gate"},
    {"in_proj_ba", "delta_rule_write"},
    {"in_proj_b", "delta_rule_write"},
    {"in_proj_a", "delta_rule_decay"},
    // Both products of Granite's gate.
    {"input_linear", "feed_forward_gate"},
    {"input_linear", "feed_forward_in"},
    {"output_linear", "feed_forward_out"},
    {"fc1_latent_proj", "expert_latent_in"},
    {"fc2_latent_proj", "expert_latent_out"},
    {"per_layer_input_gate", "layer_gate"},
    {"per_layer_projection", "layer_projection"},
    {"per_layer_model_projection", "layer_embeddings"},
    {"up_proj", "feed_forward_in"},
    {"down_proj", "feed_forward_out"},
    {"gate_up_proj", "feed_forward_gate"},
    {"gate_up_proj", "feed_forward_in"},
    {"qkv_proj", "query"},
    {"qkv_proj", "key"},
    {"qkv_proj", "value"},
    {"query_key_value", "query"},
    {"query_key_value", "key"},
    {"query_key_value", "value"},
    {"c_attn", "query"},
    {"c_attn", "key"},
    {"c_attn", "value"},
    {"wqkv", "query"},
    {"wqkv", "key"},
    {"wqkv", "value"},
    {"q_lin", "query"},
    {"k_lin", "key"},
    {"v_lin", "value"},
    {"out_lin", "output"},
    {"wq", "query"},
    {"wk", "key"},
    {"wv", "value"},
    {"c_fc", "feed_forward_in"},
    {"fc1", "feed_forward_in"},
    {"fc2", "feed_forward_out"},
    {"fc_in", "feed_forward_in"},
    {"fc_out", "feed_forward_out"},
    {"lin1", "feed_forward_in"},
    {"lin2", "feed_forward_out"},
    {"dense_h_to_4h", "feed_forward_in"},
    {"dense_4h_to_h", "feed_forward_out"},
    {"w1", "feed_forward_gate"},
    {"w3", "feed_forward_in"},
    {"w2", "feed_forward_out"},
    {"q_a_proj", "query_down"},
    {"q_b_proj", "query_up"},
    {"kv_a_proj_with_mqa", "key_value_down"},
    {"kv_b_proj", "key_value_up"},
    // GPT-2 has two of the name, and PEFT adapters beside both.
    {"c_proj", "output"},
    {"c_proj", "feed_forward_out"},
});

}  // namespace

Precision OutsideBlockProducts(Precision precision) {
  return NarrowsOperands(precision) ? Precision::kBf16 : precision;
}

std::vector<std::string> ToWords(const LoraMatrices& matrices) {
  std::vector<std::string> words;
  for (const auto& [name, member] : kLoraMatrices) {
    if (matrices.*member) words.emplace_back(name);
  }
  return words;
}
std::vector<std::string_view> LoraMatrixNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, member] : kLoraMatrices) names.push_back(name);
  return names;
}
void AddLoraMatrix(std::string_view name, LoraMatrices& matrices) {
  const std::string lowered = Lowered(name);
  bool known_name = false;
  for (const auto& [module, member] : kModulesOfModel) {
    if (module == lowered) matrices.*member = known_name = true;
  }
  const auto add = [&](std::string_view asked) {
    for (const auto& [matrix, member] : kLoraMatrices) {
      if (matrix == asked || asked == "all") {
        matrices.*member = known_name = true;
      }
    }
  };
  add(lowered);
  for (const LoraModule& module : kLoraModules) {
    if (module.name == lowered) add(module.matrix);
  }
  if (known_name) return;
  const std::vector<std::string_view> known = LoraMatrixNames();
  throw InputError(fmt::format("unknown matrix \"{}\"{}; known: {}",
                               name,
                               DidYouMean(name, known),
                               fmt::join(known, ", ")));
}

}  // namespace trainfare::model
