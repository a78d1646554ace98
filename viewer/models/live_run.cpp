// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/live_run.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "viewer/models/tool.h"

namespace hw::viewer {
namespace {

constexpr int kReadEvery = 200;  // milliseconds
constexpr int kGoodbye = 5000;   // milliseconds for the tool to take the plan out

QString processText(const QString& command, qint64 pid) {
    return LiveRun::tr("%1 (process %2)").arg(programName(command)).arg(pid);
}

}  // namespace

LiveRun::LiveRun(QObject* parent) : QObject(parent) {
    reading_.setInterval(kReadEvery);
    connect(&reading_, &QTimer::timeout, this, &LiveRun::read);
}

LiveRun::~LiveRun() {
    if (!busy()) return;
    blockSignals(true);
    stop();
    QElapsedTimer waited;
    for (waited.start(); busy() && waited.elapsed() < kGoodbye;) {
        tool_->waitForFinished(kReadEvery);
        if (busy()) read();
    }
    if (!busy()) return;
    folder_->setAutoRemove(false);
    letToolGo();
}

double LiveRun::seconds() const {
    return busy() ? static_cast<double>(since_.elapsed()) / 1e3 : 0;
}

void LiveRun::apply(const PlannedStep& planned, qint64 pid, const QString& command) {
    if (busy()) return;
    launched_ = false;
    startPlanned(planned, processText(command, pid),
                 {QStringLiteral("apply"), QString::number(pid)}, {});
}

void LiveRun::launch(const PlannedStep& planned, const QStringList& command) {
    if (busy() || command.isEmpty()) return;
    launched_ = true;
    startPlanned(planned, programName(command.join(QLatin1Char(' '))), {QStringLiteral("train")},
                 QStringList{QStringLiteral("--")} + command);
}

void LiveRun::apply(const LiveTerms& terms, qint64 pid, const QString& command) {
    if (busy()) return;
    launched_ = false;
    startFree(terms, processText(command, pid), {QStringLiteral("apply"), QString::number(pid)},
              {});
}

void LiveRun::launch(const LiveTerms& terms, const QStringList& command) {
    if (busy() || command.isEmpty()) return;
    launched_ = true;
    startFree(terms, programName(command.join(QLatin1Char(' '))), {QStringLiteral("train")},
              QStringList{QStringLiteral("--")} + command);
}

void LiveRun::startFree(const LiveTerms& terms, const QString& target, const QStringList& words,
                        const QStringList& behind) {
    planned_ = {};
    terms_ = terms;
    prepare(target);
    QStringList held = terms.budget ? QStringList{QStringLiteral("--budget"),
                                                  QString::number(terms.budget->count())}
                                    : QStringList{QStringLiteral("--on-oom")};
    if (!terms.planner.isEmpty()) held << QStringLiteral("--planner") << terms.planner;
    start(words + held + QStringList{QStringLiteral("--progress"), told_.path()} + behind);
}

void LiveRun::startPlanned(const PlannedStep& planned, const QString& target,
                           const QStringList& words, const QStringList& behind) {
    planned_ = planned;
    terms_.reset();
    prepare(target);
    const QString plan = folder_->filePath(QStringLiteral("live.plan.json"));
    if (core::Status saved = savePlan(*planned.plan, plan.toStdString()); !saved)
        return emit failed(toQString(saved.error().what), toQString(saved.error().hint));
    start(words +
          QStringList{planned.session, plan, QStringLiteral("--step"),
                      QString::number(planned.step), QStringLiteral("--progress"), told_.path()} +
          behind);
}

void LiveRun::prepare(const QString& target) {
    target_ = target;
    progress_ = {};
    stopped_ = began_ = false;
    failure_.reset();
    for (QString* each : {&status_, &errors_, &lastWords_}) each->clear();
    notes_.clear();
    folder_ = std::make_unique<QTemporaryDir>();
    told_ = GrowingFile(folder_->filePath(QStringLiteral("progress")));
    said_ = GrowingFile(folder_->filePath(QStringLiteral("said")));
}

void LiveRun::start(const QStringList& arguments) {
    tool_ = std::make_unique<QProcess>();
    // Files, because a program that writes to the pipe of a window that is gone would fail; a
    // session of its own, because Ctrl+C in the window's terminal is not for the training.
    tool_->setStandardOutputFile(QProcess::nullDevice());
    tool_->setStandardErrorFile(said_.path(), QIODevice::Append);
    tool_->setChildProcessModifier([] { ::setsid(); });
    connect(tool_.get(), &QProcess::finished, this,
            [this](int, QProcess::ExitStatus how) { toolEnded(how); });
    connect(tool_.get(), &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart) return;
        end(LiveFailure{tr("cannot start %1").arg(toolProgram()),
                        tr("the executable `highwater` belongs beside this program")});
    });
    since_.start();
    reading_.start();
    setState(State::Starting);
    tool_->start(toolProgram(), arguments, QIODevice::ReadOnly);
}

// The tool leaves a program that it has started alone at SIGUSR1; SIGINT is the program's own.
void LiveRun::stop() {
    if (!busy() || !tool_ || tool_->processId() == 0) return;
    stopped_ = true;
    ::kill(static_cast<pid_t>(tool_->processId()), launched_ ? SIGUSR1 : SIGINT);
    setState(State::Stopping);
}

void LiveRun::readSaid() {
    const QString tool = QStringLiteral("highwater: "), note = QStringLiteral("note: ");
    for (const QByteArray& each : said_.newLines()) {
        const QString line = QString::fromUtf8(each);
        if (line.startsWith(QLatin1String("highwater: error: ")) ||
            line.startsWith(QLatin1String("hint: ")))
            errors_ += line + QLatin1Char('\n');
        else if (line.startsWith(note))
            notes_ << line.mid(note.size()).trimmed();
        else if (line.startsWith(tool))
            status_ = line.mid(tool.size()).trimmed();
        else if (!line.startsWith(QLatin1Char(' ')))  // a traceback says why in its last line
            lastWords_ = line;
        // What the tool would refuse, it has refused before that.
        if (state_ == State::Starting && (status_.startsWith(QLatin1String("started '")) ||
                                          status_.startsWith(QLatin1String("attached to "))))
            trains();
    }
}

void LiveRun::read() {
    readSaid();
    bool any = false;
    for (const QByteArray& line : told_.newLines())
        any = progress_.take(line) == LiveProgress::Told::Step || any;
    if (any && state_ == State::Starting) trains();
    if (any) emit stepped();
    emit changed();
    if (progress_.end() && busy() && !toolHasMoreToSay()) {
        readSaid();
        end(outcome());
    }
}

// That a budget was too small it says when all else is written, and ends.
bool LiveRun::toolHasMoreToSay() const {
    return launched_ && budget() && progress_.end()->exitStatus.value_or(0) != 0 &&
           tool_->state() != QProcess::NotRunning;
}

void LiveRun::trains() {
    state_ = State::Training;
    began_ = true;
}

void LiveRun::toolEnded(QProcess::ExitStatus how) {
    read();
    if (!busy()) return;
    if (stopped_) return end();  // before it had begun
    const ToolError error = toolError(errors_);
    if (how == QProcess::NormalExit && !error.what.isEmpty())
        return end(LiveFailure{error.what, error.hint});
    end(LiveFailure{!terms_ ? tr("the run of %1 under the plan ended unexpectedly").arg(target_)
                    : budget()
                        ? tr("the run of %1 within the budget ended unexpectedly").arg(target_)
                        : tr("the rescue of %1 ended unexpectedly").arg(target_),
                    tr("the training goes on by itself from its next step")});
}

void LiveRun::end(const std::optional<LiveFailure>& failure) {
    reading_.stop();
    if (tool_) letToolGo();
    failure_ = failure;
    setState(State::Idle);
    if (failure)
        emit failed(failure->what, failure->hint);
    else
        emit finished(notes_);
}

std::optional<LiveFailure> LiveRun::outcome() const {
    const int status = progress_.end()->exitStatus.value_or(0);
    if (status == 0 || stopped_) return std::nullopt;
    if (const ToolError error = toolError(errors_); !error.what.isEmpty())
        return LiveFailure{error.what, error.hint};
    return LiveFailure{tr("%1 ended with status %2").arg(target_).arg(status), lastWords_};
}

// A tool that has started a program waits for its end, longer than we may live; the destructor of
// its QProcess would kill it.
void LiveRun::letToolGo() {
    QProcess* tool = tool_.release();
    tool->disconnect(this);
    if (tool->state() == QProcess::NotRunning)
        tool->deleteLater();
    else
        connect(tool, &QProcess::finished, tool, &QObject::deleteLater);
}

void LiveRun::setState(State state) {
    state_ = state;
    emit changed();
}

}  // namespace hw::viewer
