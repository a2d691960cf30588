// What every measurement of `vericache bench` runs on.
#pragma once

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "apps/run_options.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "model/model.h"

namespace vericache::apps {

struct BenchMachine {
  MachineOptions options;
  std::string model_path;
  const kernels::KernelTable* kernels = nullptr;
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<model::Model> model;
  double load_s = 0;

  // Errors: those of ResolveModelPath, SelectKernels and Model::Load.
  static Result<BenchMachine> Load(const MachineOptions& options);
};

// The limits that a pass is reported against; taken anew at every call.
struct Ceilings {
  double read_bytes_per_s = 0;
  double macs_per_s = 0;
};
Ceilings MeasureCeilings(BenchMachine& machine);

// What identifies the run in a report.
nlohmann::ordered_json DescribeMachine(const BenchMachine& machine);

}  // namespace vericache::apps
