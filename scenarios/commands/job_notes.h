#pragma once

// Notes about a job that predict and recommend both make, in the same words.

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "calibrate/fit/joined_devices.h"
#include "hardware/catalog/instance.h"
#include "model/workload.h"
#include "scenarios/commands/memory_advice.h"
#include "scenarios/job/job_estimate.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/note.h"

namespace trainfare::scenarios {

// That nothing of the scenario's source is behind a job's interval, and what
// that adds to it; nullopt: something is, or nothing is known to be added.
std::optional<Note> SourceNote(const JobEstimate& job,
                               const Scenario& scenario);

// That the scenario's file may be cut off; nullopt: it ends as files do.
std::optional<Note> EndNote(const Scenario& scenario);

// That devices have not the kernels of the stack that was asked for, and what
// their compilers make of the model instead.
std::string CompiledStackNote(model::Fusion asked,
                              model::Fusion instead,
                              const std::set<std::string>& devices);

// Why the cloud of an instance counts only where somebody names it.
std::string NamedCloudNote(const hardware::Instance& instance);

// That a job of `scenario` which fits may not, as sure as its memory is, and with
// what it has room; nullopt: it does.
std::optional<Note> MemoryNote(const JobEstimate& job,
                               const Scenario& scenario,
                               const RoomTrial& has_room,
                               Smaller smaller = Smaller::kAny);

// That several hosts train over a network that nobody named, which makes the
// interval wide; `hint` says what to do. nullopt: it is named, or there is none.
std::optional<Note> UnnamedNetworkNote(const calibrate::JoinedDevices& joined,
                                       std::string_view hint);

// "4 hosts over 25 GB/s of each, ..": what the network of several hosts is.
std::string NetworkWords(const calibrate::JoinedDevices& joined);

// That a step takes more samples than an epoch has; nullopt: it does not.
std::optional<Note> EpochNote(const JobEstimate& job, const Scenario& scenario);

// That the model is trained without an output layer; nullopt: it has one.
std::optional<Note> TaskNote(const model::Workload& workload);

// ", dropout 0.1" of what trains with it, else empty.
std::string DropoutWords(const model::Workload& workload);

// That weights are wider than the name of their model says; nullopt: they are
// not.
std::optional<Note> WeightsNote(const Scenario& scenario);

// That sequences so long are beyond what the model was trained for; nullopt:
// they are not.
std::optional<Note> PositionsNote(const model::Workload& workload);

}  // namespace trainfare::scenarios
