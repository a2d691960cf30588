#include "model/forward.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "attend/append.h"
#include "attend/attention.h"
#include "base/aligned_buffer.h"
#include "base/check.h"
#include "base/work_shares.h"
#include "model/finite.h"
#include "model/pass_rows.h"
#include "model/rope.h"

namespace vericache::model {
namespace {

using kernels::Activations;
using kernels::kActBlock;
using kernels::kPanelColumns;
using kernels::PackedMatrix;

// Up to here every thread norms and quantises all rows for itself: a barrier costs more.
constexpr int kPrivateRows = 4;
// Panels of one item of work.
constexpr int kProjectionPanels = 2;  // 32 columns: one block of the next quantisation
constexpr int kLogitPanels = 16;

constexpr int CeilDiv(int a, int b) { return (a + b - 1) / b; }

size_t FloatBytes(int n_rows, int n_columns) {
  return static_cast<size_t>(n_rows) * static_cast<size_t>(n_columns) * sizeof(float);
}

bool NeedsCodes(std::initializer_list<const PackedMatrix*> matrices) {
  return std::any_of(matrices.begin(), matrices.end(),
                     [](const PackedMatrix* m) { return kernels::IsQuantized(m->type); });
}

// Rows of the pass, normed and quantised together.
struct NormedRows {
  std::vector<int> rows;
  Activations acts;
};

// What one thread has to itself.
struct alignas(64) Scratch {
  AlignedBuffer normed;  // [kPrivateRows, n_embd]
  Activations normed_acts;
  AlignedBuffer heads;  // [kPrivateRows, n_heads * head_dim]
  Activations heads_acts;
  AlignedBuffer columns;   // [rows, columns of an item]
  AlignedBuffer columns2;  // a second result beside it
  PartClock clock;
};

}  // namespace

class Pass::State {
 public:
  State(const Model& model, const kernels::KernelTable& kernels, ThreadTeam& team, int max_rows);

  std::span<const GroupLogits> Run(std::span<const RowGroup> groups);
  PassTimes PartTimes() const;

  bool is_measuring = false;

 private:
  // Before the team runs.
  void ShapeBuffers();
  void DealItems();

  // What every member of the team runs; barriers inside.
  void RunMember(Member& member);
  void Embed(Member& member);
  void RunLayer(Member& member, int layer);
  const Activations& Norm(Member& member, const std::vector<float>& weight, NormedRows& to,
                          bool needs_codes);
  void ProjectQkv(Member& member, int layer, const Activations& h);
  const Activations& MergeHeads(Member& member, int layer, bool needs_codes);
  void AddProjection(Member& member, const PackedMatrix& w, const Activations& h,
                     WorkShares& shares);
  void GateAndUp(Member& member, const LayerWeights& w, const Activations& h);
  void CheckHiddenRows(Member& member);
  void ComputeLogits(Member& member);

  // Steps of these.
  void FinishQueries(int layer, int head, float* q);
  void FinishKeys(int layer, int head, float* k);
  void FinishValues(int layer, int head, float* v);
  void AddBias(const std::vector<float>& bias, int head, float* y);
  void NormHead(const std::vector<float>& weight, float* head);
  void Turn(int row, float* head);
  Scratch& Own(const Member& member) { return scratch_[static_cast<size_t>(member.Index())]; }
  // Waits for all members; then one deals out the finished step's work for the layer after.
  void EndStep(Member& member, WorkShares& shares, int n_items);
  void Wait(Member& member);
  float* Row(AlignedBuffer& buffer, int row, int n_columns) const {
    return buffer.As<float>() + static_cast<size_t>(row) * static_cast<size_t>(n_columns);
  }
  int QueryColumns() const { return config_.n_heads * config_.head_dim; }
  int ProjectionItems() const { return CeilDiv(config_.n_embd, kProjectionPanels * kPanelColumns); }
  int GateItems() const { return CeilDiv(config_.n_ffn, kProjectionPanels * kPanelColumns); }

  const Model& model_;
  const ModelConfig& config_;
  const kernels::KernelTable& kernels_;
  ThreadTeam& team_;
  int max_rows_;
  RopeTable rope_;
  attend::Attention attention_;

  PassRows rows_;
  NormedRows all_;     // every row
  NormedRows wanted_;  // rows with logits

  AlignedBuffer x_;       // hidden states [rows, n_embd]
  AlignedBuffer normed_;  // [rows, n_embd]
  AlignedBuffer q_;       // [rows, n_heads * head_dim]
  AlignedBuffer heads_;   // what attention gives [rows, n_heads * head_dim]
  Activations heads_acts_;
  AlignedBuffer gated_;  // [rows, n_ffn]
  Activations gated_acts_;
  AlignedBuffer logits_;  // [wanted rows, n_vocab]

  std::vector<Scratch> scratch_;  // [member]
  WorkShares qkv_items_;
  WorkShares output_items_;
  WorkShares gate_items_;
  WorkShares down_items_;
  WorkShares logit_items_;
};

// ---- a layer, as the paper has it --------------------------------------------------------------

void Pass::State::RunLayer(Member& member, int layer) {
  const LayerWeights& w = model_.GetWeights().layers[static_cast<size_t>(layer)];

  const Activations& h = Norm(member, w.attn_norm, all_, NeedsCodes({&w.wq, &w.wk, &w.wv}));
  ProjectQkv(member, layer, h);
  EndStep(member, qkv_items_, config_.n_heads + 2 * config_.n_kv_heads);
  attention_.RunTasks(member, layer, q_.As<float>(), heads_.As<float>());
  Own(member).clock.Lap(PassPart::kAttention);
  Wait(member);
  const Activations& heads = MergeHeads(member, layer, NeedsCodes({&w.wo}));
  AddProjection(member, w.wo, heads, output_items_);
  Own(member).clock.Lap(PassPart::kAttentionOutput);
  EndStep(member, output_items_, ProjectionItems());

  const Activations& h2 = Norm(member, w.ffn_norm, all_, NeedsCodes({&w.gate, &w.up}));
  GateAndUp(member, w, h2);
  EndStep(member, gate_items_, GateItems());
  AddProjection(member, w.down, gated_acts_, down_items_);
  Own(member).clock.Lap(PassPart::kDown);
  EndStep(member, down_items_, ProjectionItems());
}

void Pass::State::RunMember(Member& member) {
  Own(member).clock.Start(is_measuring);
  Embed(member);
  for (int layer = 0; layer < config_.n_layers; ++layer) RunLayer(member, layer);
  CheckHiddenRows(member);
  if (!wanted_.rows.empty()) ComputeLogits(member);
}

void Pass::State::Embed(Member& member) {
  const Member::Range rows = member.Share(rows_.Count());
  for (int row = rows.begin; row < rows.end; ++row) {
    kernels::DequantizeRow(model_.GetWeights().embedding, rows_.Row(row).token.value,
                           Row(x_, row, config_.n_embd));
  }
  Own(member).clock.Lap(PassPart::kEmbed);
  Wait(member);
}

// RMSNorm of the rows, and their codes. Few rows: each member for itself. Many: shared, rows first,
// then blocks of columns (rows of a tile share cache lines).
const Activations& Pass::State::Norm(Member& member, const std::vector<float>& weight,
                                     NormedRows& to, bool needs_codes) {
  Scratch& own = Own(member);
  const int n_rows = static_cast<int>(to.rows.size());
  const bool is_private = n_rows <= kPrivateRows;
  AlignedBuffer& normed = is_private ? own.normed : normed_;
  const Member::Range rows = is_private ? Member::Range{0, n_rows} : member.Share(n_rows);
  for (int i = rows.begin; i < rows.end; ++i) {
    kernels_.rms_norm(Row(x_, to.rows[static_cast<size_t>(i)], config_.n_embd), weight.data(),
                      config_.n_embd, config_.norm_eps, Row(normed, i, config_.n_embd));
  }
  const int n_blocks = CeilDiv(config_.n_embd, kActBlock);
  if (is_private) {
    kernels::ShapeActivations(own.normed_acts, own.normed.As<float>(), n_rows, config_.n_embd);
    if (needs_codes) kernels_.quantize(own.normed_acts, 0, n_blocks);
    own.clock.Lap(PassPart::kNorm);
    return own.normed_acts;
  }
  own.clock.Lap(PassPart::kNorm);
  Wait(member);
  if (needs_codes) {
    const Member::Range blocks = member.Share(n_blocks);
    kernels_.quantize(to.acts, blocks.begin, blocks.end);
    own.clock.Lap(PassPart::kNorm);
    Wait(member);
  }
  return to.acts;
}

// q, k, v = Wq h, Wk h, Wv h (+ bias), one head at a time; RoPE; k and v to the KVs.
void Pass::State::ProjectQkv(Member& member, int layer, const Activations& h) {
  const LayerWeights& w = model_.GetWeights().layers[static_cast<size_t>(layer)];
  Scratch& own = Own(member);
  const int n_panels = config_.head_dim / kPanelColumns;
  const auto project = [&](const PackedMatrix& matrix, int head, float* y, int stride) {
    kernels_.matmul(matrix, h, y, static_cast<size_t>(stride), head * n_panels,
                    (head + 1) * n_panels);
    own.clock.Lap(PassPart::kQkv);
  };
  // Values and keys first: their items cost more.
  for (int item; (item = qkv_items_.Next(member.Index())) >= 0;) {
    float* columns = own.columns.As<float>();
    if (int head = item; head < config_.n_kv_heads) {
      project(w.wv, head, columns, config_.head_dim);
      FinishValues(layer, head, columns);
    } else if (head -= config_.n_kv_heads; head < config_.n_kv_heads) {
      project(w.wk, head, columns, config_.head_dim);
      FinishKeys(layer, head, columns);
    } else {
      head -= config_.n_kv_heads;
      float* q = q_.As<float>() + head * config_.head_dim;
      project(w.wq, head, q, QueryColumns());
      FinishQueries(layer, head, q);
    }
    own.clock.Lap(PassPart::kRope);
  }
}

void Pass::State::AddBias(const std::vector<float>& bias, int head, float* y) {
  if (!bias.empty()) kernels_.add(y, bias.data() + head * config_.head_dim, config_.head_dim);
}

void Pass::State::NormHead(const std::vector<float>& weight, float* head) {
  if (weight.empty()) return;
  kernels_.rms_norm(head, weight.data(), config_.head_dim, config_.norm_eps, head);
}

void Pass::State::Turn(int row, float* head) {
  kernels_.rope(head, rope_.CosSin(rows_.Row(row).position), rope_.PairCount(), config_.rope.pairs);
}

void Pass::State::FinishQueries(int layer, int head, float* q) {
  const LayerWeights& w = model_.GetWeights().layers[static_cast<size_t>(layer)];
  for (int row = 0; row < rows_.Count(); ++row, q += QueryColumns()) {
    AddBias(w.bq, head, q);
    NormHead(w.q_norm, q);
    Turn(row, q);
    if (!IsEncodable(kernels_, q, config_.head_dim)) rows_.Flag(row);
    rows_.Tap(layer, head, row, q);
  }
}

void Pass::State::FinishKeys(int layer, int head, float* k) {
  const LayerWeights& w = model_.GetWeights().layers[static_cast<size_t>(layer)];
  for (int row = 0; row < rows_.Count(); ++row, k += config_.head_dim) {
    AddBias(w.bk, head, k);
    NormHead(w.k_norm, k);
    Turn(row, k);
    const kv::RowSlot slot = rows_.NewSlot(layer, head, row);
    if (!attend::AppendKey(kernels_, k, config_.head_dim, slot)) rows_.Flag(row);
  }
}

void Pass::State::FinishValues(int layer, int head, float* v) {
  const LayerWeights& w = model_.GetWeights().layers[static_cast<size_t>(layer)];
  for (int row = 0; row < rows_.Count(); ++row, v += config_.head_dim) {
    AddBias(w.bv, head, v);
    const kv::RowSlot slot = rows_.NewSlot(layer, head, row);
    if (!attend::AppendValue(kernels_, v, config_.head_dim, slot)) rows_.Flag(row);
  }
}

// The attention's partials merged, and the codes of all heads side by side. A member merges the
// heads that it quantises, so no barrier lies between.
const Activations& Pass::State::MergeHeads(Member& member, int layer, bool needs_codes) {
  Scratch& own = Own(member);
  const int n_columns = QueryColumns();
  if (member.Index() == 0 && layer + 1 < config_.n_layers) attention_.DealLayer(layer + 1);
  if (rows_.Count() <= kPrivateRows && attention_.HasOnlyPartials()) {
    attention_.MergePartials(layer, 0, config_.n_heads, own.heads.As<float>());
    kernels::ShapeActivations(own.heads_acts, own.heads.As<float>(), rows_.Count(), n_columns);
    if (needs_codes) kernels_.quantize(own.heads_acts, 0, CeilDiv(n_columns, kActBlock));
    own.clock.Lap(PassPart::kMerge);
    return own.heads_acts;
  }
  const int grain = kActBlock / std::gcd(kActBlock, config_.head_dim);
  const Member::Range heads = member.Share(config_.n_heads, grain);
  if (attention_.HasPartials()) {
    attention_.MergePartials(layer, heads.begin, heads.end, heads_.As<float>());
  }
  if (needs_codes) {
    kernels_.quantize(heads_acts_, heads.begin * config_.head_dim / kActBlock,
                      CeilDiv(heads.end * config_.head_dim, kActBlock));
  }
  own.clock.Lap(PassPart::kMerge);
  Wait(member);
  return heads_acts_;
}

// x += W h.
void Pass::State::AddProjection(Member& member, const PackedMatrix& w, const Activations& h,
                                WorkShares& shares) {
  constexpr int kColumns = kProjectionPanels * kPanelColumns;
  float* y = Own(member).columns.As<float>();
  for (int item; (item = shares.Next(member.Index())) >= 0;) {
    const int first_panel = item * kProjectionPanels;
    const int first_column = item * kColumns;
    kernels_.matmul(w, h, y, kColumns, first_panel,
                    std::min(first_panel + kProjectionPanels, w.n_panels));
    for (int row = 0; row < rows_.Count(); ++row) {
      kernels_.add(Row(x_, row, config_.n_embd) + first_column, y + row * kColumns,
                   std::min(kColumns, w.n - first_column));
    }
  }
}

// gated = silu(Wgate h) * (Wup h), and its codes: an item is one block of them.
void Pass::State::GateAndUp(Member& member, const LayerWeights& w, const Activations& h) {
  constexpr int kColumns = kProjectionPanels * kPanelColumns;
  static_assert(kColumns == kActBlock);
  const bool needs_codes = NeedsCodes({&w.down});
  Scratch& own = Own(member);
  float* gate = own.columns.As<float>();
  float* up = own.columns2.As<float>();
  for (int item; (item = gate_items_.Next(member.Index())) >= 0;) {
    const int first_panel = item * kProjectionPanels;
    const int end_panel = std::min(first_panel + kProjectionPanels, w.gate.n_panels);
    kernels_.matmul(w.gate, h, gate, kColumns, first_panel, end_panel);
    kernels_.matmul(w.up, h, up, kColumns, first_panel, end_panel);
    own.clock.Lap(PassPart::kGateUp);
    const int first_column = item * kColumns;
    for (int row = 0; row < rows_.Count(); ++row) {
      kernels_.silu_mul(gate + row * kColumns, up + row * kColumns,
                        std::min(kColumns, config_.n_ffn - first_column),
                        Row(gated_, row, config_.n_ffn) + first_column);
    }
    if (needs_codes) kernels_.quantize(gated_acts_, item, item + 1);
    own.clock.Lap(PassPart::kGate);
  }
}

// A NaN or infinity that arose anywhere stays in the row's hidden state: residuals only add.
void Pass::State::CheckHiddenRows(Member& member) {
  const Member::Range rows = member.Share(rows_.Count());
  for (int row = rows.begin; row < rows.end; ++row) {
    if (!AreFinite(Row(x_, row, config_.n_embd), config_.n_embd)) rows_.Flag(row);
  }
}

void Pass::State::ComputeLogits(Member& member) {
  const PackedMatrix& w = model_.OutputMatrix();
  const Activations& h = Norm(member, model_.GetWeights().output_norm, wanted_, NeedsCodes({&w}));
  for (int item; (item = logit_items_.Next(member.Index())) >= 0;) {
    const int first_panel = item * kLogitPanels;
    const int first_column = first_panel * kPanelColumns;
    const int n_columns = std::min(kLogitPanels * kPanelColumns, w.n - first_column);
    float* y = logits_.As<float>() + first_column;
    kernels_.matmul(w, h, y, static_cast<size_t>(w.n), first_panel,
                    std::min(first_panel + kLogitPanels, w.n_panels));
    for (size_t i = 0; i < wanted_.rows.size(); ++i) {
      if (!ZeroNonFinite(y + i * static_cast<size_t>(w.n), n_columns)) rows_.Flag(wanted_.rows[i]);
    }
  }
  Own(member).clock.Lap(PassPart::kLogits);
}

void Pass::State::EndStep(Member& member, WorkShares& shares, int n_items) {
  Wait(member);
  if (member.Index() == 0) shares.Reset(n_items);  // a barrier lies before its next use
}

void Pass::State::Wait(Member& member) {
  member.Barrier();
  Own(member).clock.Lap(PassPart::kWait);
}

// ---- before and after --------------------------------------------------------------------------

Pass::State::State(const Model& model, const kernels::KernelTable& kernels, ThreadTeam& team,
                   int max_rows)
    : model_(model),
      config_(model.Config()),
      kernels_(kernels),
      team_(team),
      max_rows_(max_rows),
      rope_(config_.rope),
      attention_(kernels, {config_.n_heads, config_.n_kv_heads, config_.head_dim}, team.Size()),
      scratch_(static_cast<size_t>(team.Size())),
      qkv_items_(team.Size()),
      output_items_(team.Size()),
      gate_items_(team.Size()),
      down_items_(team.Size()),
      logit_items_(team.Size()) {
  VC_CHECK(max_rows >= 1, "max_rows = {}", max_rows);
  VC_CHECK(config_.head_dim % kPanelColumns == 0, "head_dim = {}", config_.head_dim);
  x_ = AlignedBuffer(FloatBytes(max_rows, config_.n_embd));
  normed_ = AlignedBuffer(FloatBytes(max_rows, config_.n_embd));
  q_ = AlignedBuffer(FloatBytes(max_rows, QueryColumns()));
  heads_ = AlignedBuffer(FloatBytes(max_rows, QueryColumns()));
  gated_ = AlignedBuffer(FloatBytes(max_rows, config_.n_ffn));
  const int n_columns = std::max(config_.head_dim, kProjectionPanels * kPanelColumns);
  for (Scratch& own : scratch_) {
    own.normed = AlignedBuffer(FloatBytes(kPrivateRows, config_.n_embd));
    own.heads = AlignedBuffer(FloatBytes(kPrivateRows, QueryColumns()));
    own.columns = AlignedBuffer(FloatBytes(max_rows, n_columns));
    own.columns2 = AlignedBuffer(FloatBytes(max_rows, n_columns));
  }
}

std::span<const GroupLogits> Pass::State::Run(std::span<const RowGroup> groups) {
  rows_.Begin(groups, config_);
  VC_CHECK(rows_.Count() >= 1 && rows_.Count() <= max_rows_, "{} rows, room for {}", rows_.Count(),
           max_rows_);
  rope_.Extend(rows_.PositionEnd());
  attention_.BeginPass(rows_.Groups(), config_.n_layers);
  ShapeBuffers();
  DealItems();
  team_.Run([this](Member& member) { RunMember(member); });
  return rows_.Collect(logits_.As<float>(), model_.OutputMatrix().n);
}

void Pass::State::ShapeBuffers() {
  const int n_rows = rows_.Count();
  all_.rows.resize(static_cast<size_t>(n_rows));
  std::iota(all_.rows.begin(), all_.rows.end(), 0);
  kernels::ShapeActivations(all_.acts, normed_.As<float>(), n_rows, config_.n_embd);
  kernels::ShapeActivations(heads_acts_, heads_.As<float>(), n_rows, QueryColumns());
  kernels::ShapeActivations(gated_acts_, gated_.As<float>(), n_rows, config_.n_ffn);
  wanted_.rows = rows_.Wanted();
  const int n_wanted = static_cast<int>(wanted_.rows.size());
  if (n_wanted == 0) return;
  kernels::ShapeActivations(wanted_.acts, normed_.As<float>(), n_wanted, config_.n_embd);
  logits_.Ensure(FloatBytes(n_wanted, model_.OutputMatrix().n));
}

void Pass::State::DealItems() {
  attention_.DealLayer(0);
  qkv_items_.Reset(config_.n_heads + 2 * config_.n_kv_heads);
  output_items_.Reset(ProjectionItems());
  gate_items_.Reset(GateItems());
  down_items_.Reset(ProjectionItems());
  logit_items_.Reset(CeilDiv(model_.OutputMatrix().n_panels, kLogitPanels));
}

PassTimes Pass::State::PartTimes() const {
  PassTimes mean;
  for (const Scratch& own : scratch_) {
    for (size_t part = 0; part < kPassPartCount; ++part) {
      mean.seconds[part] += own.clock.Times().seconds[part] / static_cast<double>(scratch_.size());
    }
  }
  return mean;
}

// ---- Pass --------------------------------------------------------------------------------------

Pass::Pass(const Model& model, const kernels::KernelTable& kernels, ThreadTeam& team, int max_rows)
    : state_(std::make_unique<State>(model, kernels, team, max_rows)) {}

Pass::~Pass() = default;

std::span<const GroupLogits> Pass::Run(std::span<const RowGroup> groups) {
  return state_->Run(groups);
}

void Pass::MeasureParts(bool is_measuring) { state_->is_measuring = is_measuring; }

PassTimes Pass::PartTimes() const { return state_->PartTimes(); }

}  // namespace vericache::model
