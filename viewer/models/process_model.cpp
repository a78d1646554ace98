// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/process_model.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>

#include "core/base/units.h"
#include "viewer/models/format.h"
#include "viewer/models/tool.h"

namespace hw::viewer {
namespace {

bool isNumber(int column) {
    return column == ProcessModel::Pid || column == ProcessModel::Memory ||
           column == ProcessModel::Age;
}

}  // namespace

ProcessModel::ProcessModel(QObject* parent) : QAbstractTableModel(parent) {
    connect(&lister_, &QProcess::finished, this, &ProcessModel::read);
    connect(&lister_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) emit failed(tr("cannot start %1").arg(toolProgram()));
    });
}

ProcessModel::~ProcessModel() {
    lister_.disconnect(this);
    if (lister_.state() == QProcess::NotRunning) return;
    lister_.kill();
    lister_.waitForFinished(1000);
}

void ProcessModel::refresh() {
    if (lister_.state() != QProcess::NotRunning) return;
    lister_.start(toolProgram(), {QStringLiteral("ps"), QStringLiteral("--json")},
                  QIODevice::ReadOnly);
}

void ProcessModel::read() {
    const QJsonObject listed = QJsonDocument::fromJson(lister_.readAllStandardOutput()).object();
    if (!listed.contains(QLatin1String("processes"))) {
        const QString said = QString::fromUtf8(lister_.readAllStandardError()).trimmed();
        emit failed(said.isEmpty() ? tr("the list of processes could not be read")
                                   : said.section(QLatin1Char('\n'), 0, 0));
        return;
    }
    std::vector<TrainingProcess> found;
    for (const QJsonValue& each : listed[QLatin1String("processes")].toArray()) {
        const QJsonObject process = each.toObject();
        found.push_back({process[QLatin1String("pid")].toInteger(),
                         process[QLatin1String("command")].toString(),
                         process[QLatin1String("attachable")].toBool(),
                         process[QLatin1String("why")].toString(),
                         process[QLatin1String("folder")].toString(),
                         process[QLatin1String("resident_bytes")].toInteger(),
                         process[QLatin1String("seconds")].toInteger()});
    }
    std::sort(found.begin(), found.end(),
              [](const TrainingProcess& a, const TrainingProcess& b) { return a.pid < b.pid; });
    setProcesses(found);
    emit refreshed();
}

void ProcessModel::setProcesses(const std::vector<TrainingProcess>& listed) {
    std::size_t row = 0;
    const auto place = [&] { return static_cast<int>(row); };
    const auto position = [&] { return rows_.begin() + static_cast<std::ptrdiff_t>(row); };
    const auto drop = [&] {
        emit leaves(rows_[row].pid);
        beginRemoveRows({}, place(), place());
        rows_.erase(position());
        endRemoveRows();
    };
    for (const TrainingProcess& process : listed) {
        while (row < rows_.size() && rows_[row].pid < process.pid) drop();
        if (row < rows_.size() && rows_[row].pid == process.pid) {
            if (rows_[row] != process) {
                rows_[row] = process;
                emit dataChanged(index(place(), 0), index(place(), ColumnCount - 1));
            }
        } else {
            beginInsertRows({}, place(), place());
            rows_.insert(position(), process);
            endInsertRows();
        }
        ++row;
    }
    while (row < rows_.size()) drop();
}

int ProcessModel::rowOf(qint64 pid) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(),
                                    [&](const TrainingProcess& row) { return row.pid == pid; });
    return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

int ProcessModel::rowOf(const QString& command) const {
    int found = -1;
    for (int row = 0; row < rowCount(); ++row) {
        if (!at(row).attachable || at(row).command != command) continue;
        if (found >= 0) return -1;
        found = row;
    }
    return found;
}

int ProcessModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int ProcessModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant ProcessModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid()) return {};
    const TrainingProcess& process = at(index.row());
    if (role == Qt::TextAlignmentRole && isNumber(index.column()))
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole)
        return index.column() == Command  ? process.command
               : index.column() == Folder ? process.folder
                                          : process.why;
    if (role != Qt::DisplayRole) return {};
    switch (index.column()) {
        case Pid:
            return process.pid;
        case Command:
            return process.command;
        case Folder:
            return process.folder;
        case Memory:
            return toQString(core::humanBytes(core::Bytes(process.residentBytes)));
        case Age:
            return toQString(core::humanSeconds(process.seconds));
        default:
            return process.attachable ? ready_ : process.why;
    }
}

QVariant ProcessModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant((isNumber(section) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole) return {};
    const QString names[] = {tr("process"), tr("command"), tr("folder"),
                             tr("memory"),  tr("running"), tr("state")};
    return section < ColumnCount ? names[section] : QVariant();
}

}  // namespace hw::viewer
