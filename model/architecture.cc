#include "model/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/error.h"
#include "model/internal/enum_names.h"
#include "model/nearest.h"

namespace trainfare::model {
namespace {

constexpr std::array kFamilies = {
    std::pair{Family::kEncoder, std::string_view("encoder")},
    std::pair{Family::kDecoder, std::string_view("decoder")},
    std::pair{Family::kEncoderDecoder, std::string_view("encoder-decoder")},
};

constexpr std::array kHeads = {
    std::pair{Head::kSequenceClassification,
              std::string_view("sequence-classification")},
    std::pair{Head::kQuestionAnswering, std::string_view("question-answering")},
    std::pair{Head::kMaskedLanguageModel,
              std::string_view("masked-language-model")},
    std::pair{Head::kCausalLanguageModel,
              std::string_view("causal-language-model")},
    std::pair{Head::kPreTraining, std::string_view("pre-training")},
    std::pair{Head::kNone, std::string_view("none")},
};

Architecture Bert(std::string name,
                  int64_t layers,
                  int64_t hidden,
                  int64_t heads,
                  int64_t vocabulary) {
  Architecture a;
  a.name = std::move(name);
  a.layers = layers;
  a.hidden = hidden;
  a.heads = heads;
  a.intermediate = 4 * hidden;
  a.vocabulary = vocabulary;
  a.positions = 512;
  a.token_types = 2;
  return a;
}

// Liu et al. 2019: byte-level BPE vocabulary, no pooler when classifying, but
// a dense layer in the head; rows 0 and 1 of the position table are padding.
Architecture Roberta(std::string name,
                     int64_t layers,
                     int64_t hidden,
                     int64_t heads) {
  Architecture a = Bert(std::move(name), layers, hidden, heads, 50265);
  a.positions = 514;
  a.position_offset = 2;
  a.token_types = 1;
  a.pooler = false;
  a.classifier_dense = true;
  return a;
}

Architecture DistilBert() {
  Architecture a = Bert("distilbert-base-uncased", 6, 768, 12, 30522);
  a.token_types = 0;
  a.pooler = false;
  a.classifier_dense = true;
  return a;
}

// Radford et al. 2019.
Architecture Gpt2(std::string name,
                  int64_t layers,
                  int64_t hidden,
                  int64_t heads) {
  Architecture a;
  a.name = std::move(name);
  a.family = Family::kDecoder;
  a.layers = layers;
  a.hidden = hidden;
  a.heads = heads;
  a.intermediate = 4 * hidden;
  a.vocabulary = 50257;
  a.positions = 1024;
  a.embedding_layer_norm = false;
  a.pooler = false;
  a.head = Head::kCausalLanguageModel;
  return a;
}

// Vaswani et al. 2017, table 3; one vocabulary shared by both sides and the
// output projection, sinusoidal positions.
Architecture Transformer(std::string name, int64_t hidden, int64_t heads) {
  Architecture a;
  a.name = std::move(name);
  a.family = Family::kEncoderDecoder;
  a.layers = 6;
  a.decoder_layers = 6;
  a.hidden = hidden;
  a.heads = heads;
  a.intermediate = 4 * hidden;
  a.vocabulary = 37000;
  a.embedding_layer_norm = false;
  a.pooler = false;
  a.head = Head::kCausalLanguageModel;
  return a;
}

const std::vector<Architecture>& Presets() {
  static const std::vector<Architecture> presets = [] {
    std::vector<Architecture> all = {
        Bert("bert-base-cased", 12, 768, 12, 28996),
        Bert("bert-base-uncased", 12, 768, 12, 30522),
        Bert("bert-large-cased", 24, 1024, 16, 28996),
        Bert("bert-large-uncased", 24, 1024, 16, 30522),
        Bert("bert-mini", 4, 256, 4, 30522),
        Bert("bert-small", 4, 512, 8, 30522),
        Bert("bert-medium", 8, 512, 8, 30522),
        Bert("bert-tiny", 2, 128, 2, 30522),
        Roberta("roberta-base", 12, 768, 12),
        Roberta("roberta-large", 24, 1024, 16),
        DistilBert(),
        Gpt2("gpt2", 12, 768, 12),
        Gpt2("gpt2-medium", 24, 1024, 16),
        Gpt2("gpt2-large", 36, 1280, 20),
        Gpt2("gpt2-xl", 48, 1600, 25),
        Transformer("transformer-base", 512, 8),
        Transformer("transformer-big", 1024, 16),
    };
    std::sort(all.begin(),
              all.end(),
              [](const Architecture& a, const Architecture& b) {
                return a.name < b.name;
              });
    return all;
  }();
  return presets;
}

// Appends the tensors of one block after another under one naming prefix.
// Without names it only counts, which a prediction does at every step.
class TensorLister {
 public:
  enum class Detail { kCounts, kNames };
  TensorLister(const Architecture& a, Detail detail)
      : a_(a), named_(detail == Detail::kNames) {}

  void SetLayer(int64_t layer, std::string_view prefix, int64_t index = -1) {
    layer_ = layer;
    if (named_) {
      prefix_ =
          index < 0 ? std::string(prefix) : fmt::format("{}{}.", prefix, index);
    }
  }
  void Add(std::string_view block,
           std::string_view name,
           int64_t elements,
           int64_t columns = 1) {
    ++count_;
    elements_ += elements;
    if (named_) {
      tensors_.push_back({fmt::format("{}{}{}", prefix_, block, name),
                          elements,
                          layer_,
                          columns});
    }
  }
  void Linear(std::string_view name, int64_t inputs, int64_t outputs) {
    Add(name, ".weight", inputs * outputs, inputs);
    Add(name, ".bias", outputs);
  }
  void LayerNorm(std::string_view name) {
    Add(name, ".weight", a_.hidden);
    Add(name, ".bias", a_.hidden);
  }
  void SelfAttention() {
    if (a_.joint_projection()) {
      Linear("attention.self.query_key_value", a_.hidden, 3 * a_.hidden);
    } else {
      Linear("attention.self.query", a_.hidden, a_.hidden);
      Linear("attention.self.key", a_.hidden, a_.hidden);
      Linear("attention.self.value", a_.hidden, a_.hidden);
    }
    Linear("attention.output.dense", a_.hidden, a_.hidden);
    LayerNorm("attention.output.LayerNorm");
  }
  void CrossAttention() {
    Linear("crossattention.self.query", a_.hidden, a_.hidden);
    Linear("crossattention.self.key", a_.hidden, a_.hidden);
    Linear("crossattention.self.value", a_.hidden, a_.hidden);
    Linear("crossattention.output.dense", a_.hidden, a_.hidden);
    LayerNorm("crossattention.output.LayerNorm");
  }
  void FeedForward() {
    Linear("intermediate.dense", a_.hidden, a_.intermediate);
    Linear("output.dense", a_.intermediate, a_.hidden);
    LayerNorm("output.LayerNorm");
  }
  std::vector<ParameterTensor> Take() { return std::move(tensors_); }
  int64_t count() const { return count_; }
  int64_t elements() const { return elements_; }

 private:
  const Architecture& a_;
  bool named_;
  int64_t layer_ = 0;
  int64_t count_ = 0;
  int64_t elements_ = 0;
  std::string prefix_;
  std::vector<ParameterTensor> tensors_;
};

void AddEmbeddings(const Architecture& a, TensorLister& list) {
  list.SetLayer(0, "embeddings.");
  list.Add("word_embeddings", ".weight", a.vocabulary * a.hidden, a.hidden);
  if (a.positions > 0) {
    list.Add(
        "position_embeddings", ".weight", a.positions * a.hidden, a.hidden);
  }
  if (a.token_types > 0) {
    list.Add(
        "token_type_embeddings", ".weight", a.token_types * a.hidden, a.hidden);
  }
  if (a.embedding_layer_norm) list.LayerNorm("LayerNorm");
}

void AddHead(const Architecture& a, TensorLister& list) {
  switch (a.head) {
    case Head::kSequenceClassification:
      if (a.classifier_dense) {
        list.Linear("pre_classifier", a.hidden, a.hidden);
      }
      list.Linear("classifier", a.hidden, a.labels);
      break;
    case Head::kQuestionAnswering:
      list.Linear("qa_outputs", a.hidden, 2);
      break;
    case Head::kPreTraining:
      list.Linear("cls.seq_relationship", a.hidden, 2);
      [[fallthrough]];
    case Head::kMaskedLanguageModel:
      // The projection itself is tied to the word embeddings.
      list.Linear("cls.transform.dense", a.hidden, a.hidden);
      list.LayerNorm("cls.transform.LayerNorm");
      list.Add("cls.predictions", ".bias", a.vocabulary);
      break;
    case Head::kCausalLanguageModel:  // tied, no bias
    case Head::kNone:
      break;
  }
}

void AddAll(const Architecture& a, TensorLister& list) {
  AddEmbeddings(a, list);
  for (int64_t i = 0; i < a.layers; ++i) {
    list.SetLayer(i + 1, "encoder.layer.", i);
    list.SelfAttention();
    list.FeedForward();
  }
  for (int64_t i = 0; i < a.decoder_layers; ++i) {
    list.SetLayer(a.layers + i + 1, "decoder.layer.", i);
    list.SelfAttention();
    list.CrossAttention();
    list.FeedForward();
  }
  list.SetLayer(a.layers + a.decoder_layers + 1, "");
  // Pre-norm decoders close with one LayerNorm more.
  if (a.family == Family::kDecoder) list.LayerNorm("final_layer_norm");
  if (a.has_pooler()) list.Linear("pooler.dense", a.hidden, a.hidden);
  AddHead(a, list);
}

// nullptr when there is no such preset or alias.
const Architecture* Lookup(std::string_view name) {
  // The short names that tables and people use.
  static constexpr std::array kAliases = {
      std::pair{std::string_view("bert-base"),
                std::string_view("bert-base-uncased")},
      std::pair{std::string_view("bert-large"),
                std::string_view("bert-large-uncased")},
      std::pair{std::string_view("distilbert"),
                std::string_view("distilbert-base-uncased")},
      std::pair{std::string_view("gpt2-small"), std::string_view("gpt2")},
  };
  for (const auto& [alias, target] : kAliases) {
    if (alias == name) name = target;
  }
  for (const Architecture& preset : Presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace

bool Architecture::joint_projection() const {
  return family == Family::kDecoder && !separate_projections;
}

bool Architecture::has_pooler() const {
  return pooler && head != Head::kQuestionAnswering &&
         head != Head::kMaskedLanguageModel;
}

std::optional<int64_t> Architecture::max_sequence_length() const {
  if (positions == 0) return std::nullopt;
  return positions - position_offset;
}

std::vector<ParameterTensor> ParameterTensorsOf(const Architecture& a) {
  TensorLister list(a, TensorLister::Detail::kNames);
  AddAll(a, list);
  return list.Take();
}

int64_t ParameterTensorCount(const Architecture& a) {
  TensorLister list(a, TensorLister::Detail::kCounts);
  AddAll(a, list);
  return list.count();
}

int64_t HeadParameters(const Architecture& a) {
  TensorLister list(a, TensorLister::Detail::kCounts);
  AddHead(a, list);
  return list.elements();
}

int64_t TotalParameters(const Architecture& a) {
  TensorLister list(a, TensorLister::Detail::kCounts);
  AddAll(a, list);
  return list.elements();
}

int64_t EncoderParameters(const Architecture& a) {
  return TotalParameters(a) - HeadParameters(a);
}

std::span<const Architecture> ArchitecturePresets() { return Presets(); }

std::optional<Architecture> TryFindArchitecture(std::string_view name) {
  if (const Architecture* found = Lookup(name)) return *found;
  return std::nullopt;
}

const Architecture& FindArchitecture(std::string_view name) {
  if (const Architecture* found = Lookup(name)) return *found;
  std::vector<std::string_view> names;
  for (const Architecture& preset : Presets()) names.push_back(preset.name);
  throw InputError(fmt::format("unknown model \"{}\"{}; known: {}",
                               name,
                               DidYouMean(name, names),
                               JoinNames(names, names.size())));
}

std::string_view ToText(Family family) {
  return internal::EnumName(family, kFamilies);
}
std::string_view ToText(Head head) { return internal::EnumName(head, kHeads); }
Family FamilyFromText(std::string_view text) {
  return internal::EnumFromName(text, kFamilies, "family");
}
Head HeadFromText(std::string_view text) {
  return internal::EnumFromName(text, kHeads, "head");
}

}  // namespace trainfare::model
