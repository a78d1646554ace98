// SPDX-License-Identifier: GPL-3.0-or-later
// Ops, tensors, layers and source lines of a step, found by words.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "viewer/models/document.h"
#include "viewer/models/selection.h"

namespace hw::viewer {

class SearchModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Kind, Name, Place, Size, ColumnCount };
    static constexpr std::size_t kShown = 300;  // hits, at most

    explicit SearchModel(QObject* parent = nullptr);
    void setDocument(DocumentPointer document);
    /// Every word of it has to occur, in any order and letter case, in what is known of a hit: its
    /// name, number ("#12"), layer, category, shape, type or line. Nothing finds nothing.
    void setQuery(const QString& query);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    /// All that match, shown or not.
    std::size_t matches() const { return matches_; }
    Target target(int row) const { return entryOf(row).target; }

private:
    enum class What { Layer, Line, Op, Tensor };
    struct Entry {
        What what;
        Target target;
        QString name, place;
        QString words;     // all that can be found, in lower case
        core::Bytes size;  // that an op or a line makes, a tensor has, a layer holds at the peak
    };
    const Entry& entryOf(int row) const {
        return entries_[hits_[static_cast<std::size_t>(row)].entry];
    }
    struct Hit {
        std::size_t entry;
        int rank;  // the lower the closer
    };
    void add(What what, Target target, const QString& name, const QString& place,
             const QString& more, core::Bytes size);
    void addLayers();
    void addLines();
    void addOps();
    void addTensors();
    bool before(const Hit& a, const Hit& b) const;

    DocumentPointer document_;
    std::vector<Entry> entries_;  // made with the first query
    std::vector<Hit> hits_;
    std::size_t matches_ = 0;
};

/// What a search for these words finds first. Usage: nothing.
core::Result<Target> firstFound(const DocumentPointer& document, const std::string& words);

}  // namespace hw::viewer
