#pragma once

// What recommend says of its candidates: the answer in lines, a table, notes,
// and the same for machines.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/commands/candidates.h"
#include "scenarios/commands/choice_odds.h"
#include "scenarios/commands/recommend_options.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/output.h"
#include "scenarios/report/result_json.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// What is said of all candidates, also where the worst of them are left out.
struct Overview {
  size_t ties = 0;
  Grounds grounds;
  std::optional<NextCalibration> calibration;
};

// Whether one takes the scenario's batch in parts, as it does not fit at once.
bool IsCut(const Candidate& c,
           const Scenario& scenario,
           const RecommendOptions& options);
bool AnyIsCut(const std::vector<Candidate>& candidates,
              const Scenario& scenario,
              const RecommendOptions& options);

// "8", "8 x 4" with four micro-batches, "8 x 4 bf16".
std::string ChosenOf(const Candidate& c,
                     bool with_batch,
                     const RecommendOptions& options);

// The choice in a line, what was asked for, and how sure it is.
std::vector<std::string> Headline(const std::vector<Candidate>& candidates,
                                  const Scenario& scenario,
                                  const RecommendOptions& options,
                                  const Overview& overview);

// A row a candidate; people see the best unless they ask for all of them.
Table CandidateTable(const std::vector<Candidate>& candidates,
                     const Scenario& scenario,
                     const RecommendOptions& options);

// Leaves the first `top` and says what went.
std::string Shorten(std::vector<Candidate>& candidates, int64_t top);

// What a reader has to know to believe the figures, and warnings.
void AddNotes(const std::vector<Candidate>& candidates,
              const Scenario& scenario,
              const RecommendOptions& options,
              const Overview& overview,
              Report& report);

Json RecommendationJson(const std::vector<Candidate>& candidates,
                        const Scenario& scenario,
                        const RecommendOptions& options,
                        const Overview& overview);

}  // namespace trainfare::scenarios
