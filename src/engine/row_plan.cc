#include "engine/row_plan.h"

#include <algorithm>

namespace vericache::engine {

std::vector<RowGrant> PlanRows(std::span<const RowDemand> demands, const RowBudget& budget) {
  std::vector<int> decoding;
  std::vector<RowGrant> grants;
  int n_prefill_left = budget.n_prefill;
  for (size_t i = 0; i < demands.size(); ++i) {
    const RowDemand& demand = demands[i];
    const int session = static_cast<int>(i);
    if (demand.n_rows == 0) continue;
    if (!demand.is_prefill) {
      decoding.push_back(session);
    } else if (n_prefill_left > 0) {
      grants.push_back({session, std::min(demand.n_rows, n_prefill_left)});
      n_prefill_left -= grants.back().n_rows;
    }
  }
  const auto demand_of = [&](int session) -> const RowDemand& {
    return demands[static_cast<size_t>(session)];
  };
  std::stable_sort(decoding.begin(), decoding.end(), [&](int a, int b) {
    return demand_of(a).last_served < demand_of(b).last_served;
  });
  int n_decode_left = budget.n_decode;
  for (const int session : decoding) {
    const int n_rows = demand_of(session).n_rows;
    if (n_rows > n_decode_left) break;  // it goes first next time
    grants.push_back({session, n_rows});
    n_decode_left -= n_rows;
  }
  return grants;
}

}  // namespace vericache::engine
