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

// Formulas as they are of one row.
class RowArithmetic {
 public:
  RowArithmetic(const Published& published, const PublishedRow& row)
      : published_(published), row_(row) {}

  double Of(const PublishedFormula& formula) const {
    switch (formula.kind) {
      case FormulaKind::kNumber:
        return formula.number;
      case FormulaKind::kPrinted:
        return Printed(formula);
      case FormulaKind::kFact:
        return formula.fact(published_.RunOf(row_));
      case FormulaKind::kProduct:
      case FormulaKind::kQuotient:
        return Product(formula);
      case FormulaKind::kSum:
      case FormulaKind::kDifference:
        return Sum(formula);
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

  double Printed(const PublishedFormula& formula) const {
    const std::string id = IdOf(formula);
    const PublishedRow* row = published_.Find(id);
    if (row == nullptr) throw InputError(fmt::format("{} is not printed", id));
    return row->value.low;
  }

  double Product(const PublishedFormula& formula) const {
    double result = Of(formula.operands.front());
    for (size_t i = 1; i < formula.operands.size(); ++i) {
      const double factor = Of(formula.operands[i]);
      if (formula.kind == FormulaKind::kProduct) {
        result *= factor;
      } else {
        result /= factor;
      }
    }
    return result;
  }

  double Sum(const PublishedFormula& formula) const {
    double result = Of(formula.operands.front());
    for (size_t i = 1; i < formula.operands.size(); ++i) {
      const double term = Of(formula.operands[i]);
      result += formula.kind == FormulaKind::kDifference ? -term : term;
    }
    return result;
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
  PublishedAnswer answer;
  answer.value = RowArithmetic(published, row).Of(*row.check);
  if (!std::isfinite(*answer.value)) {
    throw InputError("its check divides by nothing");
  }
  return answer;
}

}  // namespace trainfare::scenarios
