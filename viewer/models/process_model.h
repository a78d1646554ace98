// SPDX-License-Identifier: GPL-3.0-or-later
// Training processes that can be attached to, as `highwater ps` lists them.
#pragma once

#include <QAbstractTableModel>
#include <QProcess>
#include <vector>

namespace hw::viewer {

struct TrainingProcess {
    qint64 pid = 0;
    QString command;
    bool attachable = false;
    QString why;  // where not
    QString folder;
    qint64 residentBytes = 0;
    qint64 seconds = 0;  // since its start

    bool operator==(const TrainingProcess&) const = default;
};

/// Rows come, go and change in place, so that a selection stays on its process.
class ProcessModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Pid, Command, Folder, Memory, Age, State, ColumnCount };

    explicit ProcessModel(QObject* parent = nullptr);
    ~ProcessModel() override;

    /// Lists again, in the background; nothing happens while the last listing still runs.
    void refresh();
    /// What is said of a process that can be attached to.
    void setReadyText(const QString& text) { ready_ = text; }
    void setProcesses(const std::vector<TrainingProcess>& listed);  // by ascending pid
    const TrainingProcess& at(int row) const { return rows_[static_cast<std::size_t>(row)]; }
    int rowOf(qint64 pid) const;  // -1: not there
    /// The only one that can be attached to and runs that command; -1: none, or several.
    int rowOf(const QString& command) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

signals:
    /// Its row is about to go.
    void leaves(qint64 pid);
    void refreshed();
    void failed(const QString& what);

private:
    void read();

    std::vector<TrainingProcess> rows_;
    QString ready_ = tr("can be recorded");
    QProcess lister_;
};

}  // namespace hw::viewer
