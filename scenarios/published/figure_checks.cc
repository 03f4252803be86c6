#include "scenarios/published/figure_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "calibrate/records/import/published_check.h"
#include "model/error.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Published;
using calibrate::PublishedFormula;
using calibrate::PublishedRow;
using model::InputError;
using FormulaKind = PublishedFormula::Kind;

struct WorkedOut {
  double value = 0;
  double slack = 0;  // share of it that printed digits leave open
};

// Formulas as they are of one row.
class RowArithmetic {
 public:
  RowArithmetic(const Published& published, const PublishedRow& row)
      : published_(published), row_(row) {}

  WorkedOut Of(const PublishedFormula& formula) const {
    switch (formula.kind) {
      case FormulaKind::kNumber:
        return {formula.number, 0};
      case FormulaKind::kPrinted:
        return Printed(formula);
      case FormulaKind::kFact:
        return {formula.fact(published_.RunOf(row_)), 0};
      case FormulaKind::kProduct:
      case FormulaKind::kQuotient:
        return Product(formula);
      case FormulaKind::kSum:
      case FormulaKind::kDifference:
        return Sum(formula);
      case FormulaKind::kOverLargest:
        return OverLargest(formula.operands.front());
    }
    ENSURE(false, "a formula that nobody works out");
  }

  bool ArePrinted(const PublishedFormula& formula) const {
    if (formula.kind == FormulaKind::kPrinted) {
      return published_.Find(IdOf(formula)) != nullptr;
    }
    return std::all_of(formula.operands.begin(),
                       formula.operands.end(),
                       [this](const PublishedFormula& operand) {
                         return ArePrinted(operand);
                       });
  }

 private:
  std::string IdOf(const PublishedFormula& formula) const {
    if (formula.of_part && !row_.part) {
      throw InputError("of which run is not stated: the row has no part");
    }
    return fmt::format("{}/{}{}{}",
                       formula.of_part ? *row_.part : row_.run,
                       formula.quantity,
                       formula.part ? "/" : "",
                       formula.part.value_or(""));
  }

  WorkedOut Printed(const PublishedFormula& formula) const {
    const std::string id = IdOf(formula);
    const PublishedRow* row = published_.Find(id);
    if (row == nullptr) throw InputError(fmt::format("{} is not printed", id));
    return {row->value.low, row->value.tolerance / row->value.low};
  }

  WorkedOut Product(const PublishedFormula& formula) const {
    WorkedOut result = Of(formula.operands.front());
    for (size_t i = 1; i < formula.operands.size(); ++i) {
      const WorkedOut factor = Of(formula.operands[i]);
      if (formula.kind == FormulaKind::kProduct) {
        result.value *= factor.value;
      } else {
        result.value /= factor.value;
      }
      result.slack += factor.slack;
    }
    return result;
  }

  WorkedOut Sum(const PublishedFormula& formula) const {
    WorkedOut result;
    double open = 0;
    for (size_t i = 0; i < formula.operands.size(); ++i) {
      const bool taken = i > 0 && formula.kind == FormulaKind::kDifference;
      const WorkedOut term = Of(formula.operands[i]);
      result.value += taken ? -term.value : term.value;
      open += std::abs(term.value) * term.slack;
    }
    result.slack = open / std::abs(result.value);
    return result;
  }

  WorkedOut OverLargest(const PublishedFormula& operand) const {
    const WorkedOut own = Of(operand);
    WorkedOut largest;
    for (const PublishedRow& other : published_.rows) {
      if (other.check != row_.check) continue;
      const WorkedOut one = RowArithmetic(published_, other).Of(operand);
      if (one.value > largest.value) largest = one;
    }
    const double share = own.value / largest.value;
    return {share, share < 1.0 ? own.slack + largest.slack : 0.0};
  }

  const Published& published_;
  const PublishedRow& row_;
};

}  // namespace

bool FiguresArePrinted(const Published& published, const PublishedRow& row) {
  return RowArithmetic(published, row).ArePrinted(*row.check);
}

PublishedAnswer CheckFigure(const Published& published,
                            const PublishedRow& row) {
  const WorkedOut result = RowArithmetic(published, row).Of(*row.check);
  if (!std::isfinite(result.value)) {
    throw InputError("its check divides by nothing");
  }
  PublishedAnswer answer;
  answer.value = result.value;
  if (row.check->kind == FormulaKind::kOverLargest && result.slack > 0 &&
      std::isfinite(result.slack)) {
    answer.low = result.value * (1 - result.slack);
    answer.high = result.value * (1 + result.slack);
  }
  return answer;
}

}  // namespace trainfare::scenarios
