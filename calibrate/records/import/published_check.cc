#include "calibrate/records/import/published_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <utility>

#include "calibrate/records/import/published_quantity.h"
#include "hardware/catalog/device.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using hardware::Reader;
using model::InputError;
using Formula = PublishedFormula;

template <class T>
const T& StatedFact(const std::optional<T>& value, std::string_view what) {
  if (!value) throw InputError(fmt::format("{} not stated", what));
  return *value;
}

double CountFact(const std::optional<int64_t>& count, std::string_view what) {
  return static_cast<double>(StatedFact(count, what));
}

constexpr std::array kRunFacts =
    std::to_array<std::pair<std::string_view, PublishedFact*>>({
        // Of all its devices.
        {"price",
         [](const PublishedRun& run) {
           return StatedFact(run.price, "the price of the day is").base() *
                  static_cast<double>(run.device_count);
         }},
        {"device_count",
         [](const PublishedRun& run) {
           return static_cast<double>(run.device_count);
         }},
        {"batch",
         [](const PublishedRun& run) {
           return CountFact(run.batch, "the batch is");
         }},
        {"sequence_length",
         [](const PublishedRun& run) {
           return CountFact(run.sequence_length, "the length is");
         }},
        {"epochs",
         [](const PublishedRun& run) {
           return CountFact(run.epochs, "the epochs are");
         }},
        {"steps",
         [](const PublishedRun& run) {
           return CountFact(run.steps, "the steps are");
         }},
        {"layers",
         [](const PublishedRun& run) {
           return static_cast<double>(
               StatedFact(run.architecture, "the model is").layers);
         }},
        {"overlap_gap",
         [](const PublishedRun& run) {
           return ToSeconds(StatedFact(run.overlap_gap, "the gap is"));
         }},
    });

const hardware::Device& DeviceOfFact(const PublishedRun& run) {
  return hardware::DeviceCatalog::Shipped().Find(
      StatedFact(run.device, "the device is"));
}

template <model::Precision kPrecision>
double PeakFact(const PublishedRun& run) {
  const auto peak = DeviceOfFact(run).MatrixPeak(kPrecision);
  if (!peak) {
    throw InputError(
        fmt::format("the device has no {}", model::ToText(kPrecision)));
  }
  return peak->base();
}

// Called as the device's file has them.
constexpr std::array kDeviceFacts =
    std::to_array<std::pair<std::string_view, PublishedFact*>>({
        {"memory.capacity",
         [](const PublishedRun& run) {
           return DeviceOfFact(run).memory_capacity.base();
         }},
        {"memory.bandwidth",
         [](const PublishedRun& run) {
           return DeviceOfFact(run).memory_bandwidth.base();
         }},
        {"peak.fp32", PeakFact<model::Precision::kFp32>},
        {"peak.fp16_dense", PeakFact<model::Precision::kFp16>},
        {"peak.bf16_dense", PeakFact<model::Precision::kBf16>},
        {"systolic_array.rows",
         [](const PublishedRun& run) {
           return static_cast<double>(DeviceOfFact(run).systolic_rows);
         }},
        {"systolic_array.columns",
         [](const PublishedRun& run) {
           return static_cast<double>(DeviceOfFact(run).systolic_columns);
         }},
    });

Formula NumberOf(double number) {
  Formula formula;
  formula.number = number;
  return formula;
}

std::string KnownQuantity(const std::string& name) {
  return std::string(FindQuantity(name).name);
}

// One formula a map: its operation is the key, whose value are its operands.
class FormulaReader {
 public:
  explicit FormulaReader(const PublishedChecks& before) : before_(before) {}

  Formula Read(const Reader& map) const {
    const Operation* found = nullptr;
    std::vector<std::string_view> known;
    for (const Operation& operation : kOperations) {
      known.push_back(operation.name);
      if (!map.Has(operation.name)) continue;
      if (found != nullptr) {
        map.Fail(operation.name,
                 fmt::format("expected one operation, got {} beside it",
                             found->name));
      }
      found = &operation;
    }
    if (found == nullptr) {
      map.Fail(fmt::format("expected one of {}, got {}",
                           fmt::join(known, ", "),
                           map.Keys().empty() ? "none" : map.Keys().front()));
    }
    return (this->*found->read)(map);
  }

 private:
  struct Operation {
    std::string_view name;
    Formula (FormulaReader::*read)(const Reader& map) const;
  };
  static const std::array<Operation, 11> kOperations;

  Formula Number(const Reader& map) const {
    return NumberOf(map.Number("number", -Reader::kNoBound, Reader::kNoBound));
  }

  Formula Printed(const Reader& map) const {
    Formula formula;
    formula.kind = Formula::Kind::kPrinted;
    formula.quantity = map.Parsed("printed", KnownQuantity);
    formula.part = map.OptionalText("part");
    if (map.Has("of")) {
      formula.of_part = map.Choice<bool>("of", {{"part", true}});
    }
    return formula;
  }

  Formula OfRun(const Reader& map) const {
    Formula formula;
    formula.kind = Formula::Kind::kFact;
    formula.fact = map.Choice<PublishedFact*>("run", std::span(kRunFacts));
    return formula;
  }

  Formula OfDevice(const Reader& map) const {
    Formula formula;
    formula.kind = Formula::Kind::kFact;
    formula.fact =
        map.Choice<PublishedFact*>("device", std::span(kDeviceFacts));
    return formula;
  }

  // A check that stands before it, so that none goes round in a circle.
  Formula Computed(const Reader& map) const {
    const std::string quantity = map.Text("computed");
    const auto found = before_.find(quantity);
    if (found == before_.end()) {
      map.Fail("computed",
               fmt::format("expected a quantity whose check stands before "
                           "this one, got \"{}\"",
                           quantity));
    }
    return *found->second;
  }

  Formula Product(const Reader& map) const {
    return OfMany(map, "product", Formula::Kind::kProduct);
  }
  Formula Sum(const Reader& map) const {
    return OfMany(map, "sum", Formula::Kind::kSum);
  }
  Formula Quotient(const Reader& map) const {
    return OfTwo(map, "quotient", Formula::Kind::kQuotient);
  }
  Formula Difference(const Reader& map) const {
    return OfTwo(map, "difference", Formula::Kind::kDifference);
  }

  Formula OverLargest(const Reader& map) const {
    Formula formula;
    formula.kind = Formula::Kind::kOverLargest;
    formula.operands = {Read(map.Map("over_largest"))};
    return formula;
  }

  Formula BackwardOverlap(const Reader& map) const {
    const Reader overlap = map.Map("backward_overlap");
    const std::optional<Reader> gap = overlap.OptionalMap("gap");
    Formula formula;
    formula.kind = Formula::Kind::kBackwardOverlap;
    formula.operands = {gap ? Read(*gap) : NumberOf(0)};
    for (const Reader& piece : overlap.Maps("pieces")) {
      const std::optional<Reader> times = piece.OptionalMap("times");
      formula.operands.push_back(Read(piece.Map("computation")));
      formula.operands.push_back(Read(piece.Map("communication")));
      formula.operands.push_back(times ? Read(*times) : NumberOf(1));
    }
    return formula;
  }

  Formula OfMany(const Reader& map,
                 std::string_view name,
                 Formula::Kind kind) const {
    Formula formula;
    formula.kind = kind;
    for (const Reader& operand : map.Maps(name)) {
      formula.operands.push_back(Read(operand));
    }
    if (formula.operands.size() < 2) {
      map.Fail(name,
               fmt::format("expected two operands or more, got {}",
                           formula.operands.size()));
    }
    return formula;
  }

  Formula OfTwo(const Reader& map,
                std::string_view name,
                Formula::Kind kind) const {
    Formula formula = OfMany(map, name, kind);
    if (formula.operands.size() > 2) {
      map.Fail(name,
               fmt::format("expected two operands, got {}",
                           formula.operands.size()));
    }
    return formula;
  }

  const PublishedChecks& before_;
};

constexpr std::array<FormulaReader::Operation, 11> FormulaReader::kOperations =
    {{
        {"number", &FormulaReader::Number},
        {"printed", &FormulaReader::Printed},
        {"run", &FormulaReader::OfRun},
        {"device", &FormulaReader::OfDevice},
        {"computed", &FormulaReader::Computed},
        {"product", &FormulaReader::Product},
        {"quotient", &FormulaReader::Quotient},
        {"sum", &FormulaReader::Sum},
        {"difference", &FormulaReader::Difference},
        {"over_largest", &FormulaReader::OverLargest},
        {"backward_overlap", &FormulaReader::BackwardOverlap},
    }};

// How many formulas it is made of, itself among them.
size_t SizeOf(const Formula& formula) {
  size_t size = 1;
  for (const Formula& operand : formula.operands) size += SizeOf(operand);
  return size;
}

}  // namespace

void ReadChecks(const Reader& map, PublishedChecks& checks) {
  for (const std::string& quantity : map.Keys()) {
    try {
      FindQuantity(quantity);
    } catch (const InputError& error) {
      map.Fail(quantity, error.what());
    }
    auto formula = std::make_shared<const Formula>(
        FormulaReader(checks).Read(map.Map(quantity)));
    // Checks that are computed from each other may grow without a bound.
    constexpr size_t kLargest = 1000;
    if (SizeOf(*formula) > kLargest) {
      map.Fail(quantity,
               fmt::format("expected up to {} operations, got {}",
                           kLargest,
                           SizeOf(*formula)));
    }
    if (!checks.try_emplace(quantity, std::move(formula)).second) {
      map.Fail(quantity, "expected a new check, got one of another file");
    }
  }
}

}  // namespace trainfare::calibrate
