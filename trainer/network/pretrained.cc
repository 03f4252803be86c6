#include "trainer/network/pretrained.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "hardware/files/config_json.h"
#include "hardware/files/json_text.h"
#include "hardware/files/model_config.h"
#include "model/error.h"
#include "trainer/data/json_file.h"
#include "trainer/data/safetensors.h"
#include "trainer/network/make_transformer.h"
#include "trainer/network/widen.h"

namespace trainfare::trainer {
namespace {

using model::Architecture;
using model::InputError;
using nlohmann::json;

using Config = hardware::ConfigJson;

int64_t LabelsOf(const Config& config) {
  if (config.Has("num_labels")) return config.Count("num_labels");
  if (!config.Has("id2label")) return 2;
  if (!config.At("id2label").is_object()) {
    config.Fail("id2label: expected an object");
  }
  return static_cast<int64_t>(config.At("id2label").size());
}

model::Head HeadOf(const Config& config) {
  if (config.Has("architectures") && config.At("architectures").is_array()) {
    for (const json& name : config.At("architectures")) {
      if (name.is_string() && name.get<std::string>().find(
                                  "QuestionAnswering") != std::string::npos) {
        return model::Head::kQuestionAnswering;
      }
    }
  }
  return model::Head::kSequenceClassification;
}

at::ScalarType ScalarOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return at::kFloat;
    case TensorType::kF16:
      return at::kHalf;
    case TensorType::kBf16:
      return at::kBFloat16;
    case TensorType::kF64:
      return at::kDouble;
  }
  ENSURE(false, "unknown tensor type");
}

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Checkpoints may lack the model's prefix ("bert."), and those of 2018 call
// LayerNorm's parameters gamma and beta.
const TensorBytes* Find(const SafetensorsFile& file, const std::string& name) {
  std::vector<std::string> candidates = {name};
  if (StartsWith(name, "bert.") || StartsWith(name, "roberta.") ||
      StartsWith(name, "distilbert.") || StartsWith(name, "transformer.")) {
    candidates.push_back(name.substr(name.find('.') + 1));
  }
  for (size_t i = 0; i < 2 && i < candidates.size(); ++i) {
    std::string old = candidates[i];
    const size_t norm = old.find("LayerNorm.");
    if (norm == std::string::npos) continue;
    old.replace(norm + 10,
                std::string::npos,
                old.substr(norm + 10) == "weight" ? "gamma" : "beta");
    candidates.push_back(old);
  }
  for (const std::string& candidate : candidates) {
    const auto found = file.tensors().find(candidate);
    if (found != file.tensors().end()) return &found->second;
  }
  return nullptr;
}

bool IsHead(const std::string& name) {
  return StartsWith(name, "classifier") || StartsWith(name, "qa_outputs") ||
         StartsWith(name, "pre_classifier") || StartsWith(name, "bert.pooler");
}

void ReadBert(const Config& config, PretrainedConfig& result) {
  TransformerOptions& options = result.options;
  config.Expect("hidden_act", "gelu");
  options.hidden_dropout = config.Share("hidden_dropout_prob", 0.1);
  options.attention_dropout = config.Share("attention_probs_dropout_prob", 0.1);
  options.classifier_dropout =
      config.Share("classifier_dropout", options.hidden_dropout);
  options.layer_norm_epsilon = config.Share("layer_norm_eps", 1e-12);
}

void ReadDistilBert(const Config& config, PretrainedConfig& result) {
  TransformerOptions& options = result.options;
  config.Expect("activation", "gelu");
  const bool spans =
      result.architecture.head == model::Head::kQuestionAnswering;
  options.hidden_dropout = config.Share("dropout", 0.1);
  options.attention_dropout = config.Share("attention_dropout", 0.1);
  options.classifier_dropout = config.Share(
      spans ? "qa_dropout" : "seq_classif_dropout", spans ? 0.1 : 0.2);
}

// The function of a plain block is an option of this trainer's: its blocks are
// told apart by their other parts, and decoders by whether GELU is written out.
void TakeActivation(const Config& config, PretrainedConfig& result) {
  Architecture& a = result.architecture;
  switch (a.activation) {
    case model::Activation::kGelu:
      result.options.activation = Activation::kGelu;
      break;
    case model::Activation::kGeluTanh:
    case model::Activation::kGeluNew:
      result.options.activation = Activation::kGeluTanh;
      break;
    case model::Activation::kRelu:
      result.options.activation = Activation::kRelu;
      break;
    case model::Activation::kReluSquared:
    case model::Activation::kSilu:
    case model::Activation::kXielu:
      config.Fail(fmt::format(
          "activation_function: expected gelu, gelu_new or relu, got {}",
          config.Text("activation_function", "silu")));
  }
  const bool written_out = a.activation == model::Activation::kGeluNew &&
                           a.family == model::Family::kDecoder;
  if (!written_out) a.activation = model::Activation::kGelu;
}

void ReadGpt2(const Config& config, PretrainedConfig& result) {
  TransformerOptions& options = result.options;
  TakeActivation(config, result);
  options.hidden_dropout = config.Share("resid_pdrop", 0.1);
  options.attention_dropout = config.Share("attn_pdrop", 0.1);
  options.layer_norm_epsilon = config.Share("layer_norm_epsilon", 1e-5);
  if (config.Share("embd_pdrop", 0.1) != options.hidden_dropout) {
    config.Fail("embd_pdrop: expected the value of resid_pdrop");
  }
  config.Expect("scale_attn_weights", true);
  config.Expect("tie_word_embeddings", true);
}

void ReadMarian(const Config& config, PretrainedConfig& result) {
  TransformerOptions& options = result.options;
  TakeActivation(config, result);
  options.hidden_dropout = config.Share("dropout", 0.1);
  options.attention_dropout = config.Share("attention_dropout", 0.0);
  options.layer_norm_epsilon = 1e-5;
  options.decoder_start_id = config.Count("decoder_start_token_id");
  if (options.decoder_start_id >= result.architecture.vocabulary) {
    config.Fail("decoder_start_token_id: expected a token of the vocabulary");
  }
  config.Expect("activation_dropout", 0.0);
  config.Expect("tie_word_embeddings", true);
}

// What this trainer reads itself of the types that it runs: what no count
// depends on, and what it does not have.
struct PlainType {
  std::string_view type;
  void (*read)(const Config&, PretrainedConfig&);
};
constexpr PlainType kPlainTypes[] = {
    {"bert", &ReadBert},
    {"roberta", &ReadBert},
    {"distilbert", &ReadDistilBert},
    {"gpt2", &ReadGpt2},
    {"marian", &ReadMarian},
};

const PlainType* PlainTypeOf(std::string_view type) {
  for (const PlainType& known : kPlainTypes) {
    if (known.type == type) return &known;
  }
  return nullptr;
}

RotaryOptions RotaryOf(const Config& config, double base) {
  RotaryOptions rotary;
  rotary.base = config.Positive("rope_theta", base);
  if (!config.Has("rope_scaling")) return rotary;
  const json& scaling = config.At("rope_scaling");
  const auto number = [&](const char* key) {
    if (!scaling.contains(key)) {
      config.Fail(fmt::format("rope_scaling.{}: missing", key));
    }
    return config.PositiveNumber(fmt::format("rope_scaling.{}", key),
                                 scaling[key]);
  };
  json type = "nothing";
  if (scaling.is_object()) {
    type = scaling.value("rope_type", scaling.value("type", type));
  }
  if (type == "default") return rotary;
  if (type == "linear") {
    rotary.scaling = RotaryScaling::kLinear;
    rotary.factor = number("factor");
  } else if (type == "llama3") {
    rotary.scaling = RotaryScaling::kLlama3;
    rotary.factor = number("factor");
    rotary.low_frequency_factor = number("low_freq_factor");
    rotary.high_frequency_factor = number("high_freq_factor");
    rotary.original_positions = number("original_max_position_embeddings");
  } else {
    config.Fail(
        fmt::format("rope_scaling.rope_type: expected default, linear or "
                    "llama3, got {}",
                    hardware::ShownJson(type)));
  }
  return rotary;
}

// Types of decoders like Llama's, and what tells them apart beside their
// dimensions (hardware/files/model_config.h).
struct LlamaType {
  std::string_view type;
  // Where the file does not say: of norms, and of rotary positions.
  double epsilon;
  double base;
  const char* expert_block;
  bool chooses_norm;  // norm_topk_prob; false where it is not there
};
constexpr LlamaType kLlamaTypes[] = {
    {"llama", 1e-6, 1e4, kMixtralExperts, false},
    {"mistral", 1e-6, 1e4, kMixtralExperts, false},
    {"mixtral", 1e-5, 1e6, kMixtralExperts, false},
    {"qwen2", 1e-6, 1e4, kMixtralExperts, false},
    {"qwen2_moe", 1e-6, 1e4, kMlpExperts, true},
    {"qwen3", 1e-6, 1e4, kMixtralExperts, false},
    {"qwen3_moe", 1e-6, 1e4, kMlpExperts, true},
};

const LlamaType* LlamaTypeOf(std::string_view type) {
  for (const LlamaType& known : kLlamaTypes) {
    if (known.type == type) return &known;
  }
  return nullptr;
}

void RequirePaddingInVocabulary(const Config& config,
                                const PretrainedConfig& result) {
  const int64_t vocabulary = result.architecture.vocabulary;
  if (result.options.padding_id < vocabulary) return;
  config.Fail(fmt::format(
      "pad_token_id: expected a token of the vocabulary of {}, got {}",
      vocabulary,
      result.options.padding_id));
}

void ReadLlama(const Config& config,
               const LlamaType& type,
               PretrainedConfig& result) {
  TransformerOptions& options = result.options;
  options = DefaultOptions(result.architecture);
  options.layer_norm_epsilon = config.Share("rms_norm_eps", type.epsilon);
  options.rotary = RotaryOf(config, type.base);
  options.expert_block = type.expert_block;
  options.normalised_experts =
      !type.chooses_norm || config.Flag("norm_topk_prob", false);
  options.freezes_padding = config.Has("pad_token_id");
  options.padding_id = config.Count("pad_token_id", 0);
  if (config.Has("router_jitter_noise") &&
      config.At("router_jitter_noise") != 0.0) {
    config.Fail("router_jitter_noise: expected 0, this trainer adds none");
  }
}

}  // namespace

void CopyTensor(const TensorBytes& source, const at::Tensor& target) {
  // The bytes may stand at any alignment: through a tensor of their own.
  at::Tensor staged =
      at::empty(source.shape, at::TensorOptions(ScalarOf(source.type)));
  std::memcpy(staged.mutable_data_ptr(), source.data, source.size);
  target.copy_(staged);
}

PretrainedConfig ReadConfig(const std::string& folder) {
  const std::string file =
      (std::filesystem::path(folder) / "config.json").string();
  const Config config(
      hardware::ModelConfigText(file), file, "this trainer runs nothing else");
  const std::string type = config.Text("model_type", "nothing");
  const LlamaType* const llama = LlamaTypeOf(type);
  const PlainType* const plain = PlainTypeOf(type);
  if (llama == nullptr && plain == nullptr) {
    config.Fail(
        fmt::format("model_type: expected bert, roberta, distilbert, gpt2, "
                    "marian, llama, mistral, mixtral, qwen2, qwen2_moe, qwen3 "
                    "or qwen3_moe, got {}",
                    type));
  }
  PretrainedConfig result;
  Architecture& a = result.architecture;
  a = hardware::ReadModelConfig(config.path());
  std::filesystem::path path(folder);
  if (path.filename().empty()) path = path.parent_path();
  a.name = path.filename().string();
  if (llama != nullptr) {
    ReadLlama(config, *llama, result);
  } else {
    if (a.family == model::Family::kEncoder) a.head = HeadOf(config);
    a.labels = LabelsOf(config);
    result.options.padding_id =
        config.Count("pad_token_id", type == "roberta" ? 1 : 0);
    plain->read(config, result);
    a.dropout = result.options.hidden_dropout;
  }
  RequirePaddingInVocabulary(config, result);
  return result;
}

namespace {

// Marian's checkpoints carry a constant that is added to the logits; models of
// Transformers itself leave it 0, and so does this trainer.
void RefuseLogitsBias(const SafetensorsFile& file) {
  const auto bias = file.tensors().find("final_logits_bias");
  if (bias == file.tensors().end()) return;
  const at::Tensor value = at::empty(bias->second.shape, at::kFloat);
  CopyTensor(bias->second, value);
  if (value.any().item<bool>()) {
    throw InputError(fmt::format(
        "{}: final_logits_bias: expected zeros, which this trainer adds to "
        "logits, got others",
        file.path()));
  }
}

// The files of a folder's weights: one, or those that its index names.
std::vector<std::string> WeightFiles(const std::string& folder) {
  const std::filesystem::path root(folder);
  const auto index = root / "model.safetensors.index.json";
  if (!std::filesystem::exists(index)) {
    return {(root / "model.safetensors").string()};
  }
  const json listed = ReadJsonFile(index.string());
  const auto map = listed.find("weight_map");
  if (map == listed.end() || !map->is_object()) {
    throw InputError(fmt::format(
        "{}: weight_map: expected names of tensors and files", index.string()));
  }
  std::vector<std::string> files;
  for (const json& file : *map) {
    const auto name =
        file.is_string() ? file.get<std::string>() : std::string();
    // In the folder itself, whatever the index says.
    if (name.empty() || name.find('/') != std::string::npos) {
      throw InputError(
          fmt::format("{}: weight_map: expected a file of the folder, got {}",
                      index.string(),
                      hardware::ShownJson(file)));
    }
    const std::string path = (root / name).string();
    if (std::find(files.begin(), files.end(), path) == files.end()) {
      files.push_back(path);
    }
  }
  return files;
}

// An adapter is none of the model's own tensors: a folder has it where it was
// trained.
bool IsAdapter(const std::string& name) {
  return name.find(".lora_") != std::string::npos;
}

}  // namespace

std::string LoadWeights(const std::string& folder,
                        const Transformer& transformer) {
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  for (const std::string& path : WeightFiles(folder)) {
    files.push_back(std::make_unique<SafetensorsFile>(path));
  }
  const std::string shown = files.size() == 1 ? files.front()->path() : folder;
  const at::NoGradGuard no_grad;
  std::string missing;
  for (const Parameter& parameter : transformer.parameters()) {
    const TensorBytes* tensor = nullptr;
    for (const auto& file : files) {
      if (tensor == nullptr) tensor = Find(*file, parameter.name);
    }
    if (tensor == nullptr) {
      if (IsAdapter(parameter.name)) continue;
      if (!IsHead(parameter.name)) {
        throw InputError(fmt::format(
            "{}: expected a tensor {}, got none", shown, parameter.name));
      }
      missing += (missing.empty() ? "" : ", ") + parameter.name;
      continue;
    }
    if (tensor->shape != parameter.value.sizes().vec()) {
      throw InputError(fmt::format("{}: {}: expected shape [{}], got [{}]",
                                   shown,
                                   parameter.name,
                                   fmt::join(parameter.value.sizes(), ", "),
                                   fmt::join(tensor->shape, ", ")));
    }
    CopyTensor(*tensor, parameter.value);
  }
  for (const auto& file : files) RefuseLogitsBias(*file);
  return missing;
}

void SaveTensors(const std::string& path,
                 const std::vector<Parameter>& tensors,
                 const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> held;  // what the bytes below point into
  std::vector<NamedTensorBytes> bytes;
  for (const Parameter& tensor : tensors) {
    held.push_back(Widened(tensor.value.detach().to(at::kCPU)).contiguous());
    const at::Tensor& host = held.back();
    const bool wide = host.scalar_type() == at::kDouble;
    bytes.push_back({tensor.name,
                     {wide ? TensorType::kF64 : TensorType::kF32,
                      host.sizes().vec(),
                      static_cast<const std::byte*>(host.const_data_ptr()),
                      host.nbytes()}});
  }
  WriteSafetensors(path, bytes, metadata);
}

}  // namespace trainfare::trainer
