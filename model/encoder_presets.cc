#include "model/encoder_presets.h"

#include <string>
#include <utility>

namespace trainfare::model {
namespace {

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

// Conneau et al. 2020: its tokens are of 100 languages.
Architecture XlmRoberta(std::string name,
                        int64_t layers,
                        int64_t hidden,
                        int64_t heads) {
  Architecture a = Roberta(std::move(name), layers, hidden, heads);
  a.vocabulary = 250002;
  return a;
}

// Chen et al. 2024: its positions reach further.
Architecture BgeM3() {
  Architecture a = XlmRoberta("bge-m3", 24, 1024, 16);
  a.positions = 8194;
  return a;
}

// Martin et al. 2020: its tokens are French.
Architecture Camembert() {
  Architecture a = Roberta("camembert-base", 12, 768, 12);
  a.vocabulary = 32005;
  return a;
}

// Nussbaum et al. 2024: a gate, rotary positions and no biases.
Architecture NomicEmbed() {
  Architecture a = Bert("nomic-embed-text-v1.5", 12, 768, 12, 30528);
  a.positions = 2048;
  a.dropout = 0.0;
  a.position_kind = PositionKind::kRotary;
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  a.activation = Activation::kSilu;
  a.gated = true;
  return a;
}

// Clark et al. 2020: the discriminator.
Architecture Electra(std::string name,
                     int64_t layers,
                     int64_t hidden,
                     int64_t heads,
                     int64_t embedding_size) {
  Architecture a = Bert(std::move(name), layers, hidden, heads, 30522);
  a.SetWordWidth(embedding_size);
  a.pooler = false;
  a.classifier_dense = true;
  return a;
}

// Lan et al. 2020, version 2, which drops nothing out: tables of 128 columns,
// and blocks that share their weights.
Architecture Albert(std::string name,
                    int64_t layers,
                    int64_t hidden,
                    int64_t heads) {
  Architecture a = Bert(std::move(name), layers, hidden, heads, 30000);
  a.SetWordWidth(128);
  a.shared_blocks = true;
  a.activation = Activation::kGeluNew;
  a.dropout = 0.0;
  return a;
}

// The largest one's GELU is the plain one.
Architecture AlbertXxlarge() {
  Architecture a = Albert("albert-xxlarge-v2", 12, 4096, 64);
  a.activation = Activation::kGelu;
  return a;
}

Architecture DistilBert(std::string name, int64_t vocabulary) {
  Architecture a = Bert(std::move(name), 6, 768, 12, vocabulary);
  a.token_types = 0;
  a.pooler = false;
  a.classifier_dense = true;
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

struct SideDimensions {
  int64_t layers;  // of each side
  int64_t hidden;
  int64_t heads;
  int64_t intermediate;
};

// Raffel et al. 2020: RMSNorm before, scores as they are with a bias a head and
// bucket of distances, no biases; heads of 64.
Architecture T5(std::string name, const SideDimensions& d) {
  Architecture a = Transformer(std::move(name), d.hidden, d.heads);
  a.layers = a.decoder_layers = d.layers;
  a.intermediate = d.intermediate;
  a.vocabulary = 32128;
  a.head_size = 64;
  a.norm = Norm::kRms;
  a.norm_bias = false;
  a.norm_placement = NormPlacement::kBefore;
  a.position_kind = PositionKind::kRelative;
  a.relative_buckets = 32;
  a.scaled_scores = false;
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  a.activation = Activation::kRelu;
  a.drops_activation = true;
  return a;
}

// The larger two of the first have wider heads and feed-forwards alone.
Architecture T5OfHeads(std::string name,
                       const SideDimensions& d,
                       int64_t head_size) {
  Architecture a = T5(std::move(name), d);
  a.head_size = head_size;
  return a;
}

// Its version 1.1 (Shazeer 2020): a gate, and logits with their own matrix.
Architecture T5Gated(std::string name, const SideDimensions& d) {
  Architecture a = T5(std::move(name), d);
  a.activation = Activation::kGeluNew;
  a.gated = true;
  a.untied_output = true;
  return a;
}

// Xue et al. 2021: version 1.1 with the tokens of 101 languages.
Architecture Mt5(std::string name, const SideDimensions& d) {
  Architecture a = T5Gated(std::move(name), d);
  a.vocabulary = 250112;
  return a;
}

// Lewis et al. 2020: learned positions and a norm of embeddings on both sides;
// two rows of each table are padding.
Architecture Bart(std::string name, const SideDimensions& d) {
  Architecture a = Transformer(std::move(name), d.hidden, d.heads);
  a.layers = a.decoder_layers = d.layers;
  a.intermediate = d.intermediate;
  a.vocabulary = 50265;
  a.positions = 1026;
  a.position_offset = 2;
  a.embedding_layer_norm = true;
  a.drops_activation = true;
  return a;
}

// Warner et al. 2024: rotary positions, a gate, no biases; two blocks of three
// see 64 tokens to each side; the first has no norm before attention.
Architecture ModernBert(std::string name, const SideDimensions& d) {
  Architecture a = Bert(std::move(name), d.layers, d.hidden, d.heads, 50368);
  a.intermediate = d.intermediate;
  a.positions = 8192;
  a.token_types = 0;
  a.pooler = false;
  a.classifier_dense = a.head_norm = true;
  a.head_bias = false;
  a.dropout = 0.0;
  a.norm_bias = false;
  a.norm_placement = NormPlacement::kBefore;
  a.first_norm = false;
  a.position_kind = PositionKind::kRotary;
  a.joint_projections = a.joint_gate = a.gated = true;
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  a.window = 128;
  a.windowed_layers = d.layers - (d.layers + 2) / 3;
  return a;
}

// Weller et al. 2025, "Ettin": ModernBERT's blocks.
Architecture Ettin(std::string name, const SideDimensions& d) {
  Architecture a = ModernBert(std::move(name), d);
  a.positions = 7999;
  return a;
}

// Marone et al. 2025, "mmBERT": with Gemma 2's words.
Architecture MmBert(std::string name, const SideDimensions& d) {
  Architecture a = ModernBert(std::move(name), d);
  a.vocabulary = 256000;
  return a;
}

}  // namespace

std::vector<Architecture> EncoderPresets() {
  return {
      Bert("bert-base-cased", 12, 768, 12, 28996),
      Bert("bert-base-uncased", 12, 768, 12, 30522),
      Bert("bert-base-multilingual-cased", 12, 768, 12, 119547),
      Bert("bert-large-cased", 24, 1024, 16, 28996),
      Bert("bert-large-uncased", 24, 1024, 16, 30522),
      Bert("bert-mini", 4, 256, 4, 30522),
      Bert("bert-small", 4, 512, 8, 30522),
      Bert("bert-medium", 8, 512, 8, 30522),
      Bert("bert-tiny", 2, 128, 2, 30522),
      Roberta("roberta-base", 12, 768, 12),
      Roberta("roberta-large", 24, 1024, 16),
      Roberta("distilroberta-base", 6, 768, 12),
      // FacebookAI/xlm-roberta-*
      XlmRoberta("xlm-roberta-base", 12, 768, 12),
      XlmRoberta("xlm-roberta-large", 24, 1024, 16),
      // BAAI/bge-m3, almanach/camembert-base
      BgeM3(),
      Camembert(),
      DistilBert("distilbert-base-uncased", 30522),
      DistilBert("distilbert-base-cased", 28996),
      // nreimers/MiniLM-L6-H384-uncased, of sentence-transformers' all-MiniLM
      Bert("minilm-l6-h384", 6, 384, 12, 30522),
      // microsoft/MiniLM-L12-H384-uncased, of all-MiniLM-L12 and bge-small
      Bert("minilm-l12-h384", 12, 384, 12, 30522),
      // nomic-ai/nomic-embed-text-v1.5
      NomicEmbed(),
      // google/electra-*-discriminator
      // albert/albert-*-v2
      Albert("albert-base-v2", 12, 768, 12),
      Albert("albert-large-v2", 24, 1024, 16),
      Albert("albert-xlarge-v2", 24, 2048, 16),
      AlbertXxlarge(),
      Electra("electra-small", 12, 256, 4, 128),
      Electra("electra-base", 12, 768, 12, 768),
      Electra("electra-large", 24, 1024, 16, 1024),
      // answerdotai/ModernBERT-*
      ModernBert("modernbert-base", {22, 768, 12, 1152}),
      ModernBert("modernbert-large", {28, 1024, 16, 2624}),
      // jhu-clsp/ettin-encoder-*, whose others are ModernBERT's
      Ettin("ettin-encoder-17m", {7, 256, 4, 384}),
      Ettin("ettin-encoder-32m", {10, 384, 6, 576}),
      Ettin("ettin-encoder-68m", {19, 512, 8, 768}),
      Ettin("ettin-encoder-1b", {28, 1792, 28, 3840}),
      // jhu-clsp/mmBERT-*
      MmBert("mmbert-small", {22, 384, 6, 1152}),
      MmBert("mmbert-base", {22, 768, 12, 1152}),
      Transformer("transformer-base", 512, 8),
      Transformer("transformer-big", 1024, 16),
      // google-t5/t5-*, google/t5-v1_1-*
      T5("t5-small", {6, 512, 8, 2048}),
      T5("t5-base", {12, 768, 12, 3072}),
      T5("t5-large", {24, 1024, 16, 4096}),
      T5OfHeads("t5-3b", {24, 1024, 32, 16384}, 128),
      T5OfHeads("t5-11b", {24, 1024, 128, 65536}, 128),
      T5Gated("t5-v1.1-small", {8, 512, 6, 1024}),
      T5Gated("t5-v1.1-base", {12, 768, 12, 2048}),
      T5Gated("t5-v1.1-large", {24, 1024, 16, 2816}),
      T5Gated("t5-v1.1-xl", {24, 2048, 32, 5120}),
      T5Gated("t5-v1.1-xxl", {24, 4096, 64, 10240}),
      // google/mt5-*
      Mt5("mt5-small", {8, 512, 6, 1024}),
      Mt5("mt5-base", {12, 768, 12, 2048}),
      Mt5("mt5-large", {24, 1024, 16, 2816}),
      // facebook/bart-*
      Bart("bart-base", {6, 768, 12, 3072}),
      Bart("bart-large", {12, 1024, 16, 4096}),
  };
}

}  // namespace trainfare::model
