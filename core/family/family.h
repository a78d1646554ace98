// SPDX-License-Identifier: MIT
// A family: records of the same program at different sizes, and its step at any other size.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/family/size_fit.h"
#include "core/family/tensor_form.h"
#include "core/graph/training_graph.h"

namespace hw::core {

/// A recorded step that may become a member of a family.
struct FamilyRecord {
    std::string name;  // in messages: its file
    TrainingGraph graph;
    std::vector<TensorForm> forms;  // by tensor
};

/// The size is what varies in the shapes of the batch: of tensors that ops compute with and that no
/// op made from others. It need not be the first dimension: of a sequence it may be the second.
class Family {
public:
    /// The step of `records` at any size; ops and storages are numbered as in the first one. Of
    /// several records of a size the first one's bytes count, and the median of their times.
    /// @param vary the dimension of the batch that is the size, from 0, where several vary; records
    ///        that differ from the others in another one are left out
    /// Errors: BadInput where the records do not align, have one size only, or differ in several
    /// dimensions; each with a hint. Usage: nothing varies in that dimension.
    static Result<Family> make(std::vector<FamilyRecord> records,
                               std::optional<int> vary = std::nullopt);

    const std::vector<std::int64_t>& sizes() const { return sizes_; }  // ascending
    int dimension() const { return dimension_; }  // of the batch, from 0; of the tensor below
    const std::vector<std::int64_t>& batchShape() const { return batchShape_; }  // of the first
    bool extrapolates(std::int64_t size) const {
        return size < sizes_.front() || size > sizes_.back();
    }
    /// The step at `size` (at least 1). At the size of a record its bytes and workspaces are the
    /// recorded ones; its times are what is fitted. Beyond the largest record a convolution's
    /// backward pass has at least the workspace of a kernel that copies its activations.
    TrainingGraph graphAt(std::int64_t size) const;
    /// How a tensor of that step lies on its storage; empty where records do not tell.
    TensorForm formAt(TensorIndex tensor, std::int64_t size) const;

    /// How far the step at a record's size is from the record when the fits do not know it.
    struct LeftOut {
        std::int64_t size = 0;
        Bytes predictedPeak, recordedPeak;  // of the baseline
        Nanoseconds predictedTime, recordedTime;
    };
    /// Of every size; empty where too few would be left: two, or three for a parabola.
    std::vector<LeftOut> leaveOneOut() const;

    /// Whether times at `size` can be told: among the records, or beyond them if steps take longer
    /// the larger they are by more than they vary. Steps that wait for Python take as long at twice
    /// the size, which says nothing of a hundred times it.
    bool tellsTimes(std::int64_t size) const { return timesGrow_ || !extrapolates(size); }

private:
    /// Of one size: bytes by storage, workspaces and times by op, in the numbers of graph_.
    struct Figures {
        std::int64_t size = 0;
        std::vector<std::int64_t> bytes, workspaces, times;
        std::vector<TensorForm> forms;  // by tensor
    };
    void fit();

    TrainingGraph graph_;  // its structure is that of all sizes
    int dimension_ = 0;
    std::vector<std::int64_t> batchShape_;
    std::vector<std::int64_t> sizes_;
    std::vector<Figures> figures_;  // by ascending size
    SizeCurve curve_ = SizeCurve::Straight;
    std::vector<std::variant<ExactFit, MeasuredFit>> bytes_;
    std::vector<ExactFit> workspaces_;
    std::vector<MeasuredFit> times_;
    std::optional<MeasuredFit> stepTime_;  // of their sum
    bool timesGrow_ = true;
};

/// The kinds of steps that a program has: the usual one, and further ones. Optimizers make their
/// states in the first step, say.
struct StepFamilies {
    Family usual;
    std::vector<Family> others;
};

}  // namespace hw::core
