#include "model/expert_routing.h"

#include <algorithm>

namespace trainfare::model {
namespace {

// How likely it is that none of `drawn` of so many are among `marked` of them:
// C(all - marked, drawn) / C(all, drawn).
double MissAll(double all, double marked, int64_t drawn) {
  double missed = 1.0;
  for (int64_t i = 0; i < drawn; ++i) {
    const auto before = static_cast<double>(i);
    missed *= std::max(0.0, all - marked - before) / (all - before);
  }
  return missed;
}

// C(n, k).
double Choices(int64_t n, int64_t k) {
  if (k < 0 || k > n) return 0.0;
  double choices = 1.0;
  for (int64_t i = 0; i < k; ++i) {
    choices *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  }
  return choices;
}

// How likely it is that a place of so many whole groups has none.
double MissGroups(const ExpertRouting& r, int64_t of_place) {
  const double group =
      static_cast<double>(r.experts) / static_cast<double>(r.groups);
  const double reached = group * static_cast<double>(r.groups_per_token);
  double missed = 0.0;
  for (int64_t j = 0; j <= std::min(of_place, r.groups_per_token); ++j) {
    const double chosen = Choices(of_place, j) *
                          Choices(r.groups - of_place, r.groups_per_token - j) /
                          Choices(r.groups, r.groups_per_token);
    missed +=
        chosen * MissAll(reached, static_cast<double>(j) * group, r.per_token);
  }
  return missed;
}

}  // namespace

double PlacesOfToken(const ExpertRouting& r, int64_t places) {
  const auto all = static_cast<double>(places);
  if (r.groups % places == 0) {
    return all * (1.0 - MissGroups(r, r.groups / places));
  }
  const double of_place = static_cast<double>(r.experts) / all;
  double reached = 1.0;  // share of the experts that a token's groups have
  if (places % r.groups == 0) {
    reached =
        static_cast<double>(r.groups_per_token) / static_cast<double>(r.groups);
  }
  return all * reached *
         (1.0 - MissAll(reached * static_cast<double>(r.experts),
                        of_place,
                        r.per_token));
}

}  // namespace trainfare::model
