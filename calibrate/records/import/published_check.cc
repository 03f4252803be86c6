#include "calibrate/records/import/published_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "hardware/catalog/device.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using hardware::Reader;
using model::InputError;

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
         [](const PublishedRun&
                run) { return CountFact(run.steps, "the steps are"); }},
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

// One formula a map: its operation is the key, whose value are its operands.
class FormulaReader {
 public:
  explicit FormulaReader(const OwnQuantities& own) : own_(own) {}

  PublishedFormula Read(const Reader& map) {
    const Operation& operation = OperationOf(map);
    PublishedFormula formula;
    formula.kind = operation.kind;
    (this->*operation.read)(map, operation.name, formula);
    return formula;
  }

 private:
  using Kind = PublishedFormula::Kind;
  struct Operation {
    std::string_view name;
    Kind kind;
    void (FormulaReader::*read)(const Reader& map,
                                std::string_view name,
                                PublishedFormula& formula);
  };
  static const std::array<Operation, 8> kOperations;

  static const Operation& OperationOf(const Reader& map) {
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
    return *found;
  }

  void Number(const Reader& map,
              std::string_view name,
              PublishedFormula& formula) {
    formula.number = map.Number(name, -Reader::kNoBound, Reader::kNoBound);
  }

  void Printed(const Reader& map,
               std::string_view name,
               PublishedFormula& formula) {
    formula.quantity = map.Parsed(name, [this](const std::string& quantity) {
      MeasureOfQuantity(quantity, own_);
      return quantity;
    });
    formula.part = map.OptionalText("part");
    if (map.Has("of")) {
      formula.of_part = map.Choice<bool>("of", {{"part", true}});
    }
  }

  void OfRun(const Reader& map,
             std::string_view name,
             PublishedFormula& formula) {
    formula.fact = map.Choice<PublishedFact*>(name, std::span(kRunFacts));
  }

  void OfDevice(const Reader& map,
                std::string_view name,
                PublishedFormula& formula) {
    formula.fact = map.Choice<PublishedFact*>(name, std::span(kDeviceFacts));
  }

  void Operands(const Reader& map,
                std::string_view name,
                PublishedFormula& formula) {
    for (const Reader& operand : map.Maps(name)) {
      formula.operands.push_back(Read(operand));
    }
    const size_t count = formula.operands.size();
    const bool two =
        formula.kind == Kind::kQuotient || formula.kind == Kind::kDifference;
    if (count < 2 || (two && count > 2)) {
      map.Fail(
          name,
          fmt::format(
              "expected two operands{}, got {}", two ? "" : " or more", count));
    }
  }

  const OwnQuantities& own_;
};

constexpr std::array<FormulaReader::Operation, 8> FormulaReader::kOperations = {
    {
        {"number", Kind::kNumber, &FormulaReader::Number},
        {"printed", Kind::kPrinted, &FormulaReader::Printed},
        {"run", Kind::kFact, &FormulaReader::OfRun},
        {"device", Kind::kFact, &FormulaReader::OfDevice},
        {"product", Kind::kProduct, &FormulaReader::Operands},
        {"quotient", Kind::kQuotient, &FormulaReader::Operands},
        {"sum", Kind::kSum, &FormulaReader::Operands},
        {"difference", Kind::kDifference, &FormulaReader::Operands},
    }};

}  // namespace

void ReadChecks(const Reader& map,
                const OwnQuantities& own,
                PublishedChecks& checks) {
  for (const std::string& quantity : map.Keys()) {
    try {
      MeasureOfQuantity(quantity, own);
    } catch (const InputError& error) {
      map.Fail(quantity, error.what());
    }
    auto formula = std::make_shared<const PublishedFormula>(
        FormulaReader(own).Read(map.Map(quantity)));
    if (!checks.try_emplace(quantity, std::move(formula)).second) {
      map.Fail(quantity, "expected a new check, got one of another file");
    }
  }
}

}  // namespace trainfare::calibrate
