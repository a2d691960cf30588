#include "apps/bench_machine.h"

#include <algorithm>
#include <chrono>

#include "apps/machine_speed.h"
#include "apps/model_path.h"
#include "apps/version.h"
#include "base/machine_limits.h"

namespace vericache::apps {

Result<BenchMachine> BenchMachine::Load(const MachineOptions& options) {
  BenchMachine machine;
  machine.options = options;
  auto path = ResolveModelPath(options.model);
  if (!path) return tl::unexpected(path.error());
  machine.model_path = std::move(*path);
  const auto kernels = kernels::SelectKernels(options.isa);
  if (!kernels) return tl::unexpected(kernels.error());
  machine.kernels = *kernels;
  const int n_cores = ReadMachineLimits().n_cores;
  machine.team = std::make_unique<ThreadTeam>(options.n_threads > 0 ? options.n_threads : n_cores);
  const auto begin = std::chrono::steady_clock::now();
  auto model = model::Model::Load(machine.model_path, *machine.team);
  if (!model) return tl::unexpected(model.error());
  machine.model = std::move(*model);
  machine.load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return machine;
}

Ceilings MeasureCeilings(BenchMachine& machine) {
  return {MeasureReadBandwidth(*machine.team), MeasureMatmulRate(*machine.kernels, *machine.team)};
}

nlohmann::ordered_json DescribeMachine(const BenchMachine& machine) {
  return {{"model", machine.options.model},
          {"version", VersionLine()},
          {"cpu", CpuName()},
          {"isa", machine.kernels->name},
          {"threads", machine.team->Size()},
          {"load_s", machine.load_s},
          {"weight_bytes", machine.model->WeightBytes()},
          {"n_context", machine.model->Config().n_context}};
}

}  // namespace vericache::apps
