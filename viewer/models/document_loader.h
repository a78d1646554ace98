// SPDX-License-Identifier: GPL-3.0-or-later
// Loads what the window shows: a step of a session, steps of one that is being recorded, and
// other recordings beside it.
#pragma once

#include <QObject>
#include <QStringList>
#include <optional>
#include <string>
#include <vector>

#include "viewer/models/document.h"
#include "viewer/models/task_queue.h"

namespace hw::viewer {

/// A document, and the plan files that were opened with it.
struct LoadedDocument {
    DocumentPointer document;
    std::vector<PlanPointer> files;
};

/// Works in the background. Functions whose names end in Now are for pictures: they return when it
/// is done. Both deliver a document by loaded().
class DocumentLoader : public QObject {
    Q_OBJECT
public:
    explicit DocumentLoader(QObject* parent = nullptr);

    void open(const QString& path, const QStringList& planFiles = {},
              std::optional<std::int64_t> step = std::nullopt, const std::string& device = {});
    core::Status openNow(const std::string& path, const std::vector<std::string>& planFiles,
                         std::optional<std::int64_t> step, const std::string& device = {});

    /// Loads the last complete step of a session that is being recorded; called again after every
    /// step, until open().
    void follow(const QString& path);
    bool following() const { return following_; }

    /// Other recordings of the program that is open, with other batches.
    const QStringList& records() const { return records_; }
    void setRecords(const QStringList& files);
    /// `path` and those.
    std::vector<std::string> recordsWith(const std::string& path) const;
    /// The last step of the first of the records, shown beside the document; null: there is none,
    /// or it is not loaded yet.
    const DocumentPointer& other() const { return other_; }
    core::Status loadOtherNow();

    /// Forgets what is being opened.
    void cancel();
    int pending() const { return documents_.pending(); }

signals:
    void started(const QString& what);  // a document of its own, not one beside it
    void loaded(const LoadedDocument& loaded);
    void failed(const QString& what, const QString& hint);
    void pendingChanged();
    void recordsChanged();
    void otherChanged();

private:
    void submitFollow(const QString& path);
    void loadOther();
    void fail(const core::Error& error);

    bool following_ = false, followLoading_ = false, followAgain_ = false;
    QStringList records_;
    DocumentPointer other_;
    // Last: they stop before what their tasks deliver into goes away.
    TaskQueue documents_, others_;
};

}  // namespace hw::viewer
