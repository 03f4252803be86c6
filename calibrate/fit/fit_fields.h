#pragma once

// The fields of a fit, once (model/fields.h), as they stand in its file. Those
// of the parameters' values need their units, and stand in fit_file.cc.

#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/joined_devices.h"
#include "hardware/catalog/device_fields.h"
#include "hardware/catalog/parameter.h"
#include "hardware/files/yaml_fields.h"
#include "hardware/models/kind.h"
#include "model/fields.h"
#include "model/limits.h"

namespace trainfare::calibrate {

// What no fit of the program ever passes, far above what is of use and far
// below where a prediction overflows: a standard deviation of a logarithm or
// of a share, a relative error, a number that is counted.
inline constexpr double kMostDeviation = 10.0;
inline constexpr double kMostError = 1e6;
inline constexpr int64_t kMostCount = 1'000'000'000'000;
inline constexpr int64_t kMostRanks = 100'000'000;

template <class Archive, class T>
void VisitDeviation(Archive& archive, std::string_view name, T& value) {
  archive(model::Field{.name = name, .required = true, .high = kMostDeviation},
          value);
}

template <class Archive, class T>
void VisitCorrelation(Archive& archive, T& value, bool required = true) {
  archive(
      model::Field{.name = "correlation", .required = required, .low = -1.0},
      value);
}

template <class Archive, class T>
void VisitTime(Archive& archive, std::string_view name, T& value) {
  archive(model::Field{.name = name, .required = true}, value);
}

inline void ReadValue(const hardware::Reader& map,
                      std::string_view key,
                      Quantity& quantity) {
  quantity = map.Parsed(key, QuantityFromText);
}

template <class Archive, model::Of<Place> P>
void VisitFields(Archive& archive, P& place) {
  const auto count = [&](std::string_view name, auto& value) {
    archive(
        model::Field{
            .name = name, .required = true, .least = 1, .most = kMostCount},
        value);
  };
  count("batch", place.batch);
  count("length", place.sequence_length);
  count("hidden", place.hidden);
  count("layers", place.layers);
  archive(model::Field{.name = "settings", .required = true}, place.settings);
  archive(model::Field{.name = "power_share", .low = 1e-6}, place.power_share);
}

template <class Archive, model::Of<FittedProfile> P>
void VisitFields(Archive& archive, P& profile) {
  archive(model::Field{.name = "run", .required = true}, profile.label);
  archive(model::Field{.name = "workload", .required = true}, profile.workload);
  archive(model::Field{.name = "assumed"}, profile.assumed);
}

template <class Archive, model::Of<FittedRun> R>
void VisitFields(Archive& archive, R& run) {
  archive(model::Field{.name = "run", .required = true}, run.label);
  archive(model::Field{.name = "workload", .required = true}, run.workload);
  archive(model::Field{.name = "place", .one_line = true}, run.place);
  archive(model::Field{.name = "quantity", .required = true}, run.quantity);
  archive(model::Field{.name = "devices", .most = model::kMostDevices},
          run.devices);
  archive(
      model::Field{.name = "hosts", .least = 1, .most = model::kMostDevices},
      run.hosts);
  archive(
      model::Field{.name = "ranks", .least = 1, .most = model::kMostDevices},
      run.ranks);
  archive(model::Field{.name = "added"}, run.added);
  archive(model::Field{.name = "assumed"}, run.assumed);
  VisitTime(archive, "measured", run.measured);
  VisitTime(archive, "modelled", run.modelled);
  archive(model::Field{.name = "left_out"}, run.left_out);
}

template <class Archive, model::Of<RingFit> R>
void VisitFields(Archive& archive, R& fit) {
  archive(
      model::Field{
          .name = "step_latency", .required = true, .may_be_zero = true},
      fit.ring.step_latency);
  archive(
      model::Field{
          .name = "step_latency_error", .required = true, .may_be_zero = true},
      fit.latency_error);
  archive(model::Field{.name = "link", .required = true}, fit.ring.link);
  VisitDeviation(archive, "link_error", fit.link_error);
  VisitCorrelation(archive, fit.correlation);
  VisitDeviation(archive, "scatter", fit.scatter);
}

template <class Archive, model::Of<CollectiveFactor> F>
void VisitFields(Archive& archive, F& one) {
  archive(model::Field{.name = "factor",
                       .required = true,
                       .low = kLeastCollectiveFactor,
                       .high = kMostCollectiveFactor},
          one.factor);
  VisitDeviation(archive, "error", one.error);
}

// The ring beside computation, where it was timed.
template <class Network>
struct RingBeside {
  Network& network;
  bool empty() const { return !network.beside_timed; }
};
template <class Network>
RingBeside(Network&) -> RingBeside<Network>;

template <class Archive, class Network>
void VisitFields(Archive& archive, const RingBeside<Network>& beside) {
  Network& network = beside.network;
  if constexpr (model::ReadingArchive<Archive>) network.beside_timed = true;
  VisitFields(archive, network.beside);
  archive(model::Field{.name = "speed", .required = true, .low = 0.001},
          network.speed);
  VisitDeviation(archive, "speed_error", network.speed_error);
}

template <class Archive, model::Of<FittedAllReduce> A>
void VisitFields(Archive& archive, A& row) {
  archive(model::Field{.name = "size", .required = true}, row.size);
  archive(model::Field{.name = "beside", .required = true}, row.beside);
  VisitTime(archive, "measured", row.measured);
  VisitTime(archive, "modelled", row.modelled);
}

template <class Group>
struct RankShare {
  Group& group;
};
template <class Group>
RankShare(Group&) -> RankShare<Group>;

template <class Archive, class Group>
void VisitFields(Archive& archive, const RankShare<Group>& share) {
  const auto factor = [&](std::string_view name, auto& value) {
    archive(model::Field{.name = name,
                         .required = true,
                         .low = kLeastShare,
                         .high = kMostShare},
            value);
  };
  factor("value", share.group.share);
  VisitDeviation(archive, "error", share.group.share_error);
  factor("prior", share.group.share_prior);
  archive(model::Field{.name = "determined", .required = true},
          share.group.share_determined);
}

template <class Group>
struct RankHost {
  Group& group;
  bool empty() const { return group.host_prior.base() == 0; }
};
template <class Group>
RankHost(Group&) -> RankHost<Group>;

template <class Archive, class Group>
void VisitFields(Archive& archive, const RankHost<Group>& host) {
  VisitTime(archive, "value", host.group.host);
  VisitDeviation(archive, "error", host.group.host_error);
  VisitTime(archive, "prior", host.group.host_prior);
  VisitCorrelation(archive, host.group.host_share_correlation);
  archive(model::Field{.name = "determined", .required = true},
          host.group.host_determined);
}

template <class Archive, model::Of<RankFit> G>
void VisitFields(Archive& archive, G& group) {
  auto& network = group.network;
  archive(
      model::Field{
          .name = "ranks", .required = true, .least = 2, .most = kMostRanks},
      network.ranks);
  archive(model::Field{.name = "ranks_per_device",
                       .required = true,
                       .least = 1,
                       .most = network.ranks},
          group.ranks_per_device);
  archive(model::Field{.name = "backend"}, group.backend);
  archive(model::Field{.name = "transport"}, group.transport);
  archive(model::Field{.name = "source"}, group.source);
  archive(model::Field{.name = "alone", .required = true, .one_line = true},
          network.alone);
  if constexpr (model::ReadingArchive<Archive>) network.beside = network.alone;
  const RingBeside<std::remove_reference_t<decltype(network)>> beside{network};
  archive(model::Field{.name = "beside", .one_line = true}, beside);
  archive(model::Field{.name = "all_gather", .one_line = true},
          network.all_gather);
  archive(model::Field{.name = "reduce_scatter", .one_line = true},
          network.reduce_scatter);
  const RankShare<G> share{group};
  archive(model::Field{.name = "share", .required = true, .one_line = true},
          share);
  const RankHost<G> host{group};
  archive(model::Field{.name = "host", .one_line = true}, host);
  VisitDeviation(archive, "scatter", group.scatter);
  archive(
      model::Field{.name = "all_reduces", .required = true, .one_line = true},
      group.all_reduces);
  archive(model::Field{.name = "runs"}, group.runs);
}

template <class Archive, model::Of<FittedPowerRun> R>
void VisitFields(Archive& archive, R& run) {
  archive(model::Field{.name = "run", .required = true}, run.label);
  archive(model::Field{.name = "workload", .required = true}, run.workload);
  archive(model::Field{.name = "measured", .required = true}, run.measured);
  archive(model::Field{.name = "modelled", .required = true}, run.modelled);
}

// One factor of power with its error.
template <class Number>
struct PowerFactor {
  Number& factor;
  Number& error;
};
template <class Number>
PowerFactor(Number&, Number&) -> PowerFactor<Number>;

template <class Archive, class Number>
void VisitFields(Archive& archive, const PowerFactor<Number>& power) {
  // A board that draws ten times what its datasheet says is a mistake.
  archive(
      model::Field{
          .name = "factor", .required = true, .low = 0.1, .high = 10.0},
      power.factor);
  VisitDeviation(archive, "error", power.error);
}

template <class Archive, model::Of<FittedPower> P>
void VisitFields(Archive& archive, P& power) {
  const PowerFactor products{power.products, power.products_error};
  archive(model::Field{.name = "products", .required = true, .one_line = true},
          products);
  const PowerFactor others{power.others, power.others_error};
  archive(model::Field{.name = "others", .required = true, .one_line = true},
          others);
  VisitCorrelation(archive, power.correlation);
  VisitDeviation(archive, "scatter", power.scatter);
  archive(model::Field{.name = "runs", .required = true}, power.runs);
}

// A file leaves out what `source` says already, being the only one.
template <class Archive, class Sources>
void VisitSources(Archive& archive,
                  const std::string& source,
                  Sources& sources) {
  std::vector<std::string> others;
  if (sources != std::vector{source}) others = sources;
  archive(model::Field{.name = "sources"}, others);
  if constexpr (model::ReadingArchive<Archive>) {
    sources = others.empty() ? std::vector{source} : std::move(others);
  }
}

template <class Archive, model::Of<Provenance> P>
void VisitFields(Archive& archive, P& from) {
  archive(model::Field{.name = "source"}, from.source);
  VisitSources(archive, from.source, from.sources);
  archive(model::Field{.name = "host"}, from.host);
  archive(model::Field{.name = "software"}, from.software);
  archive(model::Field{.name = "date"}, from.date);
  archive(model::Field{.name = "runs", .required = true, .most = kMostCount},
          from.runs);
  archive(
      model::Field{
          .name = "observations", .required = true, .most = kMostCount},
      from.observations);
  archive(model::Field{.name = "kernels", .most = kMostCount}, from.kernels);
}

// How well a fit meets what it was fitted to.
template <class FitLike>
struct FitErrors {
  FitLike& fit;
};
template <class FitLike>
FitErrors(FitLike&) -> FitErrors<FitLike>;

template <class Archive, class FitLike>
void VisitFields(Archive& archive, const FitErrors<FitLike>& errors) {
  FitLike& fit = errors.fit;
  const auto error = [&](std::string_view name, bool required, auto& value) {
    archive(
        model::Field{.name = name, .required = required, .high = kMostError},
        value);
  };
  error("in_sample", true, fit.in_sample_error);
  error("leave_one_out", false, fit.leave_one_out_error);
  VisitDeviation(archive, "residual_scatter", fit.residual_scatter);
  archive(
      model::Field{
          .name = "degrees_of_freedom", .required = true, .most = kMostCount},
      fit.degrees_of_freedom);
  const bool of_kernels =
      !model::ReadingArchive<Archive> && fit.provenance.kernels > 0;
  error("kernel_in_sample", of_kernels, fit.kernel_in_sample_error);
  error("kernel_leave_one_out", false, fit.kernel_leave_one_out_error);
}

// The least and the largest of a count, as [least, largest].
template <class Archive, class Count>
void VisitEnds(Archive& archive,
               std::string_view name,
               Count& least,
               Count& largest) {
  std::vector<int64_t> ends = {least, largest};
  archive(model::Field{.name = name,
                       .required = true,
                       .most = std::numeric_limits<int64_t>::max()},
          ends);
  if constexpr (model::ReadingArchive<Archive>) {
    if (ends.size() != 2 || ends[0] > ends[1]) {
      archive.Fail(name,
                   "expected the least and the largest, such as [8, 512]");
    }
    least = ends[0];
    largest = ends[1];
  }
}

template <class Archive, model::Of<FittedRange> R>
void VisitFields(Archive& archive, R& range) {
  VisitEnds(archive, "tokens", range.min_tokens, range.max_tokens);
  VisitEnds(archive,
            "sequence_length",
            range.min_sequence_length,
            range.max_sequence_length);
  VisitEnds(archive, "parameters", range.min_parameters, range.max_parameters);
  archive(model::Field{.name = "settings", .required = true}, range.settings);
}

// What stands behind the name of a parameter, its value and prior in `unit`.
template <class Archive, class P>
void VisitParameter(Archive& archive, P& parameter, std::string_view unit) {
  hardware::InUnit value{parameter.value, unit};
  archive(model::Field{.name = "value", .required = true}, value);
  VisitDeviation(archive, "standard_error", parameter.standard_error);
  hardware::InUnit prior{parameter.prior, unit};
  archive(model::Field{.name = "prior", .required = true}, prior);
  archive(model::Field{.name = "determined", .required = true},
          parameter.determined);
  archive(model::Field{.name = "determined_by"}, parameter.determined_by);
}

// One of what joins several devices.
template <class Archive, model::Of<FittedParameter> P>
void VisitFields(Archive& archive, P& parameter) {
  archive(model::Field{.name = "name", .required = true, .plain = true},
          parameter.name);
  VisitParameter(archive, parameter, UnitOfJoined(parameter.name));
}

// The one of kernels by themselves.
template <class FitLike>
struct AloneParameter {
  FitLike& fit;
  bool empty() const { return !fit.alone; }
};
template <class FitLike>
AloneParameter(FitLike&) -> AloneParameter<FitLike>;

template <class Archive, class FitLike>
void VisitFields(Archive& archive, const AloneParameter<FitLike>& of_kernels) {
  FitLike& fit = of_kernels.fit;
  // A reader asks for the keys before it has one.
  if constexpr (!std::is_const_v<FitLike>) {
    if (!fit.alone) fit.alone.emplace();
  }
  archive(model::Field{.name = "name", .required = true, .plain = true},
          fit.alone->name);
  const auto* info = hardware::FindParameter(hardware::ParametersOf(fit.kind),
                                             fit.alone->name);
  VisitParameter(archive, *fit.alone, info != nullptr ? info->unit : "1");
}

// What stands before and behind the parameters.
template <class Archive, model::Of<Fit> F>
void VisitHead(Archive& archive, F& fit) {
  archive(model::Field{.name = "device", .required = true}, fit.device);
  archive(model::Field{.name = "reported_name"}, fit.reported_name);
  archive(model::Field{.name = "kind", .required = true}, fit.kind);
  archive(model::Field{.name = "provenance", .required = true}, fit.provenance);
  const FitErrors<F> errors{fit};
  archive(
      model::Field{
          .name = "errors",
          .required = true,
          .comment =
              "Relative errors, medians; scatter of log(model / measured)."},
      errors);
  archive(model::Field{.name = "range", .required = true}, fit.range);
}

template <class Archive, model::Of<Fit> F>
void VisitTail(Archive& archive, F& fit) {
  archive(model::Field{.name = "measured_device"}, fit.measured_device);
  archive(
      model::Field{
          .name = "ranks",
          .comment =
              "Ranks that train together. Errors: of a latency in seconds, "
              "of a link\nand the share relative. beside: while the ranks "
              "compute, at `speed`.\nhost: what the host adds to a step, "
              "with its correlation to the share."},
      fit.ranks);
  const AloneParameter<F> alone{fit};
  archive(
      model::Field{
          .name = "alone",
          .comment = "Of kernels by themselves; standard_error as below."},
      alone);
  archive(
      model::Field{
          .name = "joined",
          .comment =
              "What joins devices whose links nobody timed; errors of the "
              "logarithms."},
      fit.joined);
  archive(
      model::Field{.name = "power",
                   .comment =
                       "Power of matrix products and of other work over the "
                       "datasheet's; errors\nof the logarithms, scatter of "
                       "log(model / measured)."},
      fit.power);
  archive(
      model::Field{
          .name = "profiles",
          .one_line = true,
          .comment =
              "Runs of which a profiler showed what engines do; times of them "
              "are among\nthe runs below."},
      fit.profiles);
  archive(
      model::Field{.name = "runs", .required = !model::ReadingArchive<Archive>},
      fit.runs);
}

// One parameter. Its value and prior are in the unit that its kind's table
// names; `covariance` is its row.
template <class Parameter, class Numbers>
struct ParameterFields {
  Parameter& parameter;
  std::string_view unit;
  Numbers& covariance;
};
template <class Parameter, class Numbers>
ParameterFields(Parameter&, std::string_view, Numbers&)
    -> ParameterFields<Parameter, Numbers>;

template <class Archive, class P, class Numbers>
void VisitFields(Archive& archive, const ParameterFields<P, Numbers>& row) {
  archive(model::Field{.name = "name", .required = true, .plain = true},
          row.parameter.name);
  VisitParameter(archive, row.parameter, row.unit);
  archive(model::Field{.name = "covariance",
                       .required = true,
                       .low = -kMostDeviation * kMostDeviation,
                       .high = kMostDeviation * kMostDeviation},
          row.covariance);
}

}  // namespace trainfare::calibrate
