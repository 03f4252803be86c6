#include "calibrate/fit/fit_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "calibrate/fit/joined_devices.h"
#include "hardware/catalog/parameter.h"
#include "hardware/models/device_models.h"
#include "model/units.h"

namespace trainfare::calibrate {

namespace {

using Json = nlohmann::ordered_json;

Json ParameterJson(const FittedParameter& parameter,
                   const hardware::ParameterInfo& info) {
  Json row = {
      {"name", parameter.name},
      {"unit", info.unit},
      {"value", parameter.value},
      {"standard_error", parameter.standard_error},
      {"scale", info.transform == hardware::Transform::kLog ? "log" : "linear"},
      {"prior", parameter.prior},
      {"determined", parameter.determined}};
  if (!parameter.determined) row["determined_by"] = parameter.determined_by;
  return row;
}

Json ParametersJson(const std::vector<FittedParameter>& fitted,
                    std::span<const hardware::ParameterInfo> infos) {
  Json parameters = Json::array();
  for (size_t i = 0; i < fitted.size(); ++i) {
    parameters.push_back(ParameterJson(fitted[i], infos[i]));
  }
  return parameters;
}

// What kernels by themselves have of their own; null where the fit has none.
Json AloneJson(const Fit& fit) {
  if (!fit.alone) return nullptr;
  const auto* info = hardware::FindParameter(hardware::ParametersOf(fit.kind),
                                             fit.alone->name);
  return info == nullptr ? Json(nullptr)
                         : ParameterJson(*fit.alone, info->Alone());
}

Json RingJson(const RingFit& one) {
  return {{"step_latency_s", model::ToSeconds(one.ring.step_latency)},
          {"step_latency_error_s", model::ToSeconds(one.latency_error)},
          {"link_bytes_per_s", one.ring.link.base()},
          {"link_error", one.link_error},
          {"scatter", one.scatter}};
}

Json RanksJson(const std::vector<RankFit>& groups) {
  Json ranks = Json::array();
  for (const RankFit& group : groups) {
    const RankNetwork& network = group.network;
    Json row = {{"ranks", network.ranks},
                {"ranks_per_device", group.ranks_per_device},
                {"backend", group.backend},
                {"transport", group.transport},
                {"alone", RingJson(network.alone)},
                {"beside", nullptr},
                {"speed", network.speed},
                {"share", group.share},
                {"share_error", group.share_error},
                {"share_prior", group.share_prior},
                {"host_s", model::ToSeconds(group.host)},
                {"host_error", group.host_error},
                {"scatter", group.scatter},
                {"all_reduces", group.all_reduces.size()},
                {"observations", group.runs.size()}};
    if (network.beside_timed) row["beside"] = RingJson(network.beside);
    ranks.push_back(std::move(row));
  }
  return ranks;
}

}  // namespace

std::string FitJson(const Fit& fit) {
  const auto known = [](const std::optional<double>& error) {
    return error ? Json(*error) : Json(nullptr);
  };
  const Json json = {
      {"schema_version", 1},
      {"device", fit.device},
      {"reported_name", fit.reported_name},
      {"runs", fit.provenance.runs},
      {"observations", fit.provenance.observations},
      {"kernels", fit.provenance.kernels},
      {"date", fit.provenance.date},
      {"in_sample_error", fit.in_sample_error},
      {"leave_one_out_error", known(fit.LeftOutError())},
      {"kernel_in_sample_error", fit.kernel_in_sample_error},
      {"kernel_leave_one_out_error", known(fit.kernel_leave_one_out_error)},
      {"residual_scatter", fit.residual_scatter},
      {"parameters",
       ParametersJson(fit.parameters, hardware::ParametersOf(fit.kind))},
      {"alone", AloneJson(fit)},
      {"joined", ParametersJson(fit.joined, JoinedParameters(fit.kind, 1.0))},
      {"ranks", RanksJson(fit.ranks)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace trainfare::calibrate
