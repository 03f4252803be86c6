#pragma once

// Published measurements: scenarios/published/*.yaml, schema
// trainfare.published/1. A run is a configuration that somebody trained; a row
// is one figure printed about it. docs/guide/published.md says what stands
// there and what a fit may use.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/import/published_value.h"
#include "model/architecture.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// What the figure may serve for.
enum class PublishedUse {
  kFit,    // a model may be fitted to it, and is validated on it
  kCheck,  // compared, never fitted: arithmetic, bounds, too little known
  kShow,   // kept as data and shown beside an answer: accuracy, loss
  // Wrong, contradicted or said twice; the corrections or a `why` say how.
  kNone,
};

struct PublishedOptimizer {
  model::OptimizerKind kind = model::OptimizerKind::kAdamW;
  std::optional<model::OptimizerImplementation> implementation;
  bool single_tensor = false;  // one fused kernel a tensor, not for all
};

struct CountRange {
  int64_t least = 0;
  int64_t most = 0;
};

// A run as its document tells it, and what is assumed where it is silent: what
// is absent nobody says and nobody assumed.
struct PublishedRun {
  std::string name;
  std::string position;  // file:line:col
  std::string document;  // in whose file it stands
  std::optional<model::Architecture> architecture;
  model::Work work = model::Work::kTraining;
  std::optional<std::string> device;  // a name of the catalog
  int64_t device_count = 1;
  std::optional<std::string> instance;  // that the devices are part of
  std::optional<int64_t> batch;         // sequences per device
  int64_t cores_per_batch = 1;  // of a device, where batches are of one core
  int64_t accumulation = 1;
  std::optional<int64_t> sequence_length;
  std::optional<int64_t> epochs;
  std::optional<CountRange> train_samples;  // of one epoch
  // Runs on the same data that print run and step time, which together say how
  // many samples an epoch has.
  std::vector<std::string> samples_from;
  std::optional<int64_t> samples_in_run;
  std::optional<int64_t> steps;
  std::optional<model::Precision> precision;  // fp16, bf16: mixed
  std::optional<PublishedOptimizer> optimizer;
  std::optional<std::string> stack;  // hugging-face, lightseq, tensorflow, ..
  std::optional<model::Fusion> fusion;  // what the stack means to us
  std::optional<std::string> against;   // stack that a ratio divides by
  std::optional<std::string> against_run;
  std::optional<int64_t> predictions_per_sequence;
  bool layer_decay = false;  // a learning rate of its own for every layer
  bool gradient_checkpointing = false;
  bool stochastic_rounding = false;
  int64_t compiler_level = 2;
  std::optional<model::Bytes<>> swap;  // of the host, for a compiler
  std::optional<std::string> lengths;  // padded to each batch's own: the file
  std::optional<model::UsdPerSecond<>> price;  // of one device
  std::optional<std::string> same_as;  // run of the same configuration: a
                                       // left-out row leaves both out
  // What of this run, or of the workload that it refers to, nobody states, by
  // its key, and why it is taken to be what stands there.
  std::map<std::string, std::string> assumed;
};

struct Measure;           // calibrate/records/import/published_quantity.h
struct PublishedFormula;  // calibrate/records/import/published_check.h

struct PublishedRow {
  std::string id;  // run/quantity or run/quantity/part
  std::string position;
  std::string run;
  std::string group;
  std::string quantity;
  const Measure* measure = nullptr;  // of the quantity; never nullptr
  std::optional<std::string> part;   // kernel, layer, engine, weighting
  PublishedValue value;
  std::optional<model::Bytes<>> size;  // of the message of an all-reduce
  PublishedUse use = PublishedUse::kNone;
  std::vector<int64_t> corrections;
  std::vector<std::string> records;  // of the source: "file/record"
  std::vector<std::string> refs;     // tables and sections, one a record
  // How its document comes by figures of this quantity; nullptr: it states none.
  std::shared_ptr<const PublishedFormula> check;
  // Why no job answers it, as its document's files say; empty: a job does, or
  // the check says what it is.
  std::string why_not;
};

struct PublishedCorrection {
  std::string what;
  std::string handled;
};

// A line of the table of errors.
struct PublishedGroup {
  std::string name;
  std::string title;
  // What is asked of its rows, in percent; something always is.
  struct Limit {
    std::optional<double> median;
    std::optional<double> worst;
    bool all_right = false;
    bool all_answered = false;
    bool all_inside = false;  // the 80 % interval

    bool operator==(const Limit&) const = default;
  };
  std::optional<Limit> as_shipped;  // absent: nothing is asked
  std::optional<Limit> leave_one_out;
  // Whether structure or priors of the models were chosen in sight of its rows.
  std::string chosen;  // "yes", "no", "priors"
};

struct Published {
  std::vector<PublishedGroup> groups;
  std::map<std::string, PublishedRun> runs;
  std::vector<PublishedRow> rows;
  std::map<int64_t, PublishedCorrection> corrections;
  // "file/record" or "file/*" -> why it is no row.
  std::map<std::string, std::string> not_carried;

  const PublishedRun& RunOf(const PublishedRow& row) const;
  // nullptr when there is no such row.
  const PublishedRow* Find(std::string_view id) const;
  // nullptr when there is no such group.
  const PublishedGroup* Group(std::string_view name) const;
  // Whether two runs are one configuration, printed twice or run twice.
  bool Same(const std::string& run, const std::string& other) const;
};

std::string_view ToText(PublishedUse use);

}  // namespace trainfare::calibrate
