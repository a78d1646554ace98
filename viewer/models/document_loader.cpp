// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/document_loader.h"

#include <algorithm>
#include <utility>

namespace hw::viewer {

namespace {

core::Result<LoadedDocument> load(const std::string& path,
                                  const std::vector<std::string>& planFiles,
                                  std::optional<std::int64_t> step, const std::string& device) {
    core::Result<DocumentPointer> document = loadDocument(path, step, device);
    if (!document) return document.error();
    LoadedDocument loaded{*document, {}};
    for (const std::string& file : planFiles) {
        core::Result<PlanPointer> plan = loadPlan(**document, file);
        if (!plan) return plan.error();
        // A file that the session holds too is shown as the session knows it, with its runs.
        const auto& stored = (*document)->plans;
        const auto same = std::find_if(stored.begin(), stored.end(), [&](const PlanPointer& other) {
            return samePlan(*other, **plan);
        });
        loaded.files.push_back(same == stored.end() ? *plan : *same);
    }
    return loaded;
}

}  // namespace

DocumentLoader::DocumentLoader(QObject* parent) : QObject(parent) {
    connect(&documents_, &TaskQueue::pendingChanged, this, &DocumentLoader::pendingChanged);
}

void DocumentLoader::fail(const core::Error& error) {
    emit failed(toQString(error.what), toQString(error.hint));
}

void DocumentLoader::open(const QString& path, const QStringList& planFiles,
                          std::optional<std::int64_t> step, const std::string& device) {
    documents_.cancelAll();
    emit started(tr("opening %1").arg(path));
    following_ = followLoading_ = false;
    std::vector<std::string> files;
    for (const QString& file : planFiles) files.push_back(file.toStdString());
    documents_.submit(
        [this, path, files, step, device](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
            core::Result<LoadedDocument> opened = load(path.toStdString(), files, step, device);
            return [this, opened] {
                if (!opened) return fail(opened.error());
                emit loaded(*opened);
            };
        });
}

core::Status DocumentLoader::openNow(const std::string& path,
                                     const std::vector<std::string>& planFiles,
                                     std::optional<std::int64_t> step, const std::string& device) {
    documents_.cancelAll();
    emit started(tr("opening %1").arg(toQString(path)));
    following_ = followLoading_ = false;
    core::Result<LoadedDocument> opened = load(path, planFiles, step, device);
    if (!opened) return opened.error();
    emit loaded(*opened);
    return {};
}

void DocumentLoader::follow(const QString& path) {
    if (!following_) {
        documents_.cancelAll();
        following_ = true, followLoading_ = false;
    }
    followAgain_ = followLoading_;  // one at a time; the last step is what counts
    if (!followLoading_) submitFollow(path);
}

// A step that cannot be read yet is passed over: the next one is on its way.
void DocumentLoader::submitFollow(const QString& path) {
    followLoading_ = true;
    emit started(tr("reading the last step"));
    documents_.submit([this, path](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
        core::Result<LoadedDocument> step = load(path.toStdString(), {}, std::nullopt, {});
        return [this, path, step] {
            followLoading_ = false;
            if (!following_) return;
            if (step) emit loaded(*step);
            if (std::exchange(followAgain_, false)) submitFollow(path);
        };
    });
}

void DocumentLoader::cancel() {
    documents_.cancelAll();
    followLoading_ = false;
}

void DocumentLoader::setRecords(const QStringList& files) {
    const bool same = !files.isEmpty() && !records_.isEmpty() && files.front() == records_.front();
    records_ = files;
    emit recordsChanged();
    if (!same) loadOther();
}

void DocumentLoader::loadOther() {
    others_.cancelAll();
    const bool had = std::exchange(other_, nullptr) != nullptr;
    if (had) emit otherChanged();
    if (records_.isEmpty()) return;
    others_.submit(
        [this, path = records_.front()](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
            core::Result<DocumentPointer> opened = loadDocument(path.toStdString());
            return [this, opened] {
                if (!opened) return fail(opened.error());
                other_ = *opened;
                emit otherChanged();
            };
        });
}

core::Status DocumentLoader::loadOtherNow() {
    others_.cancelAll();
    if (records_.isEmpty()) return {};
    core::Result<DocumentPointer> opened = loadDocument(records_.front().toStdString());
    if (!opened) return opened.error();
    other_ = *opened;
    emit otherChanged();
    return {};
}

std::vector<std::string> DocumentLoader::recordsWith(const std::string& path) const {
    std::vector<std::string> files{path};
    for (const QString& record : records_) files.push_back(record.toStdString());
    return files;
}

}  // namespace hw::viewer
