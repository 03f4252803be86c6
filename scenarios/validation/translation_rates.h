#pragma once

// Published rates of translation training in Fairseq and LightSeq2, and what
// they say of the host that launches their kernels.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/predictor.h"
#include "hardware/catalog/device.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::scenarios {

struct TranslationRate {
  int64_t layers = 0;  // of the encoder, and as many of the decoder
  int64_t devices = 1;
  int64_t tokens = 0;  // a batch of one device
  std::string stack;   // fairseq, fairseq-apex, lightseq
  // Of the target side; a batch that is filled to its tokens.
  double words_per_second = 0;

  model::Seconds<> step() const {
    return model::Seconds<>(static_cast<double>(tokens * devices) /
                            words_per_second);
  }
};

struct TranslationRates {
  std::string device;
  std::string source;
  std::vector<TranslationRate> rates;
};

TranslationRates LoadTranslationRates(const std::string& path);
// The file that ships with the tool.
TranslationRates ShippedTranslationRates();

// A step of Transformer-big: pairs of 32 tokens in fp16. Without Apex the
// update is an operation at a time.
model::Workload TranslationWorkload(std::string_view stack,
                                    const model::Architecture& architecture,
                                    int64_t tokens);
model::Workload TranslationWorkload(const TranslationRate& rate);

// Parameters of the GPU model: the host time of a launch and of a tensor, and
// the rates of products and memory, that the rates of one GPU determine; the
// others at their priors. The host's prior is wide: whose it was nobody says.
std::vector<double> FitTranslation(const TranslationRates& rates);

// A device with such parameters.
calibrate::Predictor TranslationPredictor(const hardware::Device& device,
                                          const std::vector<double>& fitted);

}  // namespace trainfare::scenarios
