// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/trace_marks.h"

#include <algorithm>
#include <cmath>

#include "viewer/models/format.h"

namespace hw::viewer {
namespace {

constexpr double kNarrowest = 1;  // pixels: the shortest stretch is still seen

struct Cell {
    float present = 0, rematerialized = 0;  // share of the pixel's area

    int cover() const { return quarters(present); }
    int share() const { return present > 0 ? quarters(rematerialized / present) : 0; }

    static int quarters(float share) {
        return share <= 0 ? 0
                          : std::clamp(static_cast<int>(std::lround(share * TraceMark::kWhole)), 1,
                                       TraceMark::kWhole);
    }
};

class Painter {
public:
    Painter(const PlanTrace& trace, const TraceView& view) : trace_(trace), view_(view) {}

    std::vector<TraceMark> run() {
        const auto rows = static_cast<std::int32_t>(trace_.rows.size());
        for (std::int32_t row = 0; row < rows; ++row) {
            const double low = y(row), high = y(row + 1);
            if (high <= 0) continue;
            if (low >= view_.height) break;
            for (std::size_t i = trace_.firstBar[row]; i < trace_.firstBar[row + 1]; ++i)
                high - low >= 1 ? addBar(trace_.bars[i], low, high)
                                : addToCells(trace_.bars[i], low, high);
        }
        mergeCells();
        return std::move(marks_);
    }

private:
    double x(std::int32_t step) const {
        const double at =
            view_.axes.steps ? static_cast<double>(step) : milliseconds(trace_.begin[step]);
        return (at - view_.left) / (view_.right - view_.left) * view_.width;
    }
    double y(std::int32_t row) const {
        const double at = view_.axes.bytes ? static_cast<double>(trace_.below[row].count())
                                           : static_cast<double>(row);
        return (at - view_.low) / (view_.high - view_.low) * view_.height;
    }

    void addBar(const TraceBar& bar, double low, double high) {
        double left = x(bar.begin), right = x(bar.end);
        right = std::max(right, left + kNarrowest);
        left = std::max(left, 0.0);
        right = std::min(right, static_cast<double>(view_.width));
        if (right <= left) return;
        const bool again = bar.by == core::ActionKind::Recompute;
        TraceMark mark{left,
                       std::max(low, 0.0),
                       right,
                       std::min(high, static_cast<double>(view_.height)),
                       bar.by,
                       TraceMark::kWhole,
                       again ? TraceMark::kWhole : 0};
        // Stretches of a row that share a pixel become one, which keeps what was rematerialized.
        if (!marks_.empty() && marks_.back().low == mark.low && marks_.back().right > mark.left &&
            mark.right - mark.left <= 1 && marks_.back().right - marks_.back().left <= 1) {
            marks_.back().right = mark.right;
            if (again) marks_.back().by = mark.by, marks_.back().rematerialized = 4;
            return;
        }
        marks_.push_back(mark);
    }

    void addToCells(const TraceBar& bar, double low, double high) {
        const double left = std::max(x(bar.begin), 0.0);
        const double right =
            std::min(std::max(x(bar.end), left + 0.25), static_cast<double>(view_.width));
        low = std::max(low, 0.0);
        high = std::min(high, static_cast<double>(view_.height));
        if (right <= left || high <= low) return;
        if (cells_.empty())
            cells_.resize(static_cast<std::size_t>(view_.width) *
                          static_cast<std::size_t>(view_.height));
        for (int line = static_cast<int>(low); line < high; ++line) {
            const double tall = std::min(high, line + 1.0) - std::max(low, double(line));
            for (int column = static_cast<int>(left); column < right; ++column) {
                const double wide = std::min(right, column + 1.0) - std::max(left, double(column));
                Cell& cell =
                    cells_[static_cast<std::size_t>(line) * static_cast<std::size_t>(view_.width) +
                           static_cast<std::size_t>(column)];
                cell.present += static_cast<float>(tall * wide);
                if (bar.by == core::ActionKind::Recompute)
                    cell.rematerialized += static_cast<float>(tall * wide);
            }
        }
    }

    // Equal neighbours of a line become one run, equal runs of neighbouring lines one rectangle.
    void mergeCells() {
        if (cells_.empty()) return;
        std::vector<TraceMark> above, line;
        for (int row = 0; row < view_.height; ++row) {
            line = runsOf(row);
            auto old = above.begin();
            for (TraceMark& run : line) {
                while (old != above.end() && old->left < run.left) marks_.push_back(*old++);
                if (old == above.end() || old->left != run.left || old->right != run.right ||
                    old->cover != run.cover || old->rematerialized != run.rematerialized)
                    continue;
                run.low = old->low;
                ++old;  // it goes on in this line
            }
            marks_.insert(marks_.end(), old, above.end());
            above = std::move(line);
        }
        marks_.insert(marks_.end(), above.begin(), above.end());
    }

    std::vector<TraceMark> runsOf(int row) const {
        std::vector<TraceMark> runs;
        const Cell* cell =
            &cells_[static_cast<std::size_t>(row) * static_cast<std::size_t>(view_.width)];
        for (int column = 0; column < view_.width; ++column, ++cell) {
            const int cover = cell->cover(), share = cell->share();
            if (cover == 0) continue;
            if (!runs.empty() && runs.back().right == column && runs.back().cover == cover &&
                runs.back().rematerialized == share)
                runs.back().right = column + 1;
            else
                runs.push_back({double(column), double(row), column + 1.0, row + 1.0,
                                core::ActionKind::Compute, cover, share});
        }
        return runs;
    }

    const PlanTrace& trace_;
    const TraceView& view_;
    std::vector<Cell> cells_;  // made when the first row shares its pixels
    std::vector<TraceMark> marks_;
};

}  // namespace

std::vector<TraceMark> visibleMarks(const PlanTrace& trace, const TraceView& view) {
    if (view.width <= 0 || view.height <= 0 || view.right <= view.left || view.high <= view.low ||
        trace.steps() == 0)
        return {};
    return Painter(trace, view).run();
}

}  // namespace hw::viewer
