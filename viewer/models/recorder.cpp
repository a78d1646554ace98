// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/recorder.h"

#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>
#include <csignal>
#include <utility>

#include "viewer/models/tool.h"

namespace hw::viewer {
namespace {

constexpr int kGoodbye = 5000;  // milliseconds for the recorder to leave the process
const QString kUntilStopped = QStringLiteral("1000000000");

// "train" of "python3 train.py"; sessions are named so.
QString shortName(const QString& command) {
    QString name = programName(command);
    if (name.endsWith(QLatin1String(".py"))) name.chop(3);
    return name;
}

}  // namespace

Recorder::Recorder(QObject* parent) : QObject(parent) {
    process_.setProcessChannelMode(QProcess::SeparateChannels);
    process_.setStandardOutputFile(QProcess::nullDevice());
    connect(&process_, &QProcess::readyReadStandardError, this, [this] {
        rest_ += QString::fromUtf8(process_.readAllStandardError());
        for (qsizetype end = 0; (end = rest_.indexOf(QLatin1Char('\n'))) >= 0;) {
            const QString line = rest_.left(end);
            rest_.remove(0, end + 1);
            readLine(line);
        }
    });
    connect(&process_, &QProcess::finished, this, &Recorder::ended);
    connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart) return;
        setState(State::Idle);
        emit failed(tr("cannot start %1").arg(toolProgram()),
                    tr("the executable `highwater` belongs beside this program"));
    });
}

Recorder::~Recorder() {
    process_.disconnect(this);
    if (!busy()) return;
    stop();
    process_.waitForFinished(kGoodbye);
}

QString Recorder::sessionFor(const QString& command, const QString& folder) {
    const QString stem = shortName(command) + QLatin1Char('-') +
                         QDateTime::currentDateTime().toString(QStringLiteral("yyyyMMdd-HHmmss"));
    QString file = QDir(folder).filePath(stem + QStringLiteral(".hws"));
    for (int n = 2; QFileInfo::exists(file); ++n)
        file = QDir(folder).filePath(QStringLiteral("%1-%2.hws").arg(stem).arg(n));
    return file;
}

double Recorder::seconds() const {
    return busy() ? static_cast<double>(since_.elapsed()) / 1e3 : 0;
}

void Recorder::attach(qint64 pid, const QString& command, const QString& session, int steps) {
    if (busy()) return;
    launched_ = false;
    target_ = tr("%1 (process %2)").arg(shortName(command)).arg(pid);
    start({QStringLiteral("attach"), QString::number(pid), QStringLiteral("-o"), session,
           QStringLiteral("--steps"), steps > 0 ? QString::number(steps) : kUntilStopped},
          session);
}

void Recorder::launch(const QStringList& command, const QString& session, int steps) {
    if (busy() || command.isEmpty()) return;
    launched_ = true;
    target_ = shortName(command.join(QLatin1Char(' ')));
    start(QStringList{QStringLiteral("record"), QStringLiteral("-o"), session,
                      QStringLiteral("--steps"), steps > 0 ? QString::number(steps) : kUntilStopped,
                      QStringLiteral("--")} +
              command,
          session);
}

void Recorder::start(const QStringList& arguments, const QString& session) {
    session_ = session;
    steps_ = 0;
    notes_.clear();
    status_.clear(), said_.clear(), rest_.clear();
    since_.start();
    setState(State::Starting);
    process_.start(toolProgram(), arguments, QIODevice::ReadOnly);
}

// A launched program is sent on its way (as `detach` does), an attached one is left alone.
void Recorder::stop() {
    if (!busy() || process_.processId() == 0) return;
    setState(State::Stopping);
    ::kill(static_cast<pid_t>(process_.processId()), launched_ ? SIGUSR1 : SIGINT);
}

void Recorder::readLine(const QString& line) {
    static const QRegularExpression step(QStringLiteral("^highwater: step (\\d+): \\d+ ops$"));
    const auto after = [&](const char* start) {
        return line.mid(static_cast<qsizetype>(qstrlen(start))).trimmed();
    };
    if (const auto match = step.match(line); match.hasMatch()) {
        steps_ = match.captured(1).toInt() + 1;
        if (state_ == State::Starting) setState(State::Recording);
        emit stepRecorded(session_);
    } else if (line.startsWith(QLatin1String("highwater: error: ")) ||
               line.startsWith(QLatin1String("hint: "))) {
        said_ += line + QLatin1Char('\n');
    } else if (line.startsWith(QLatin1String("note: "))) {
        notes_ << after("note: ");
    } else if (line.startsWith(QLatin1String("highwater: "))) {
        status_ = after("highwater: ");
        if (state_ == State::Starting && status_ == QLatin1String("capturing"))
            setState(State::Recording);
    }
    emit changed();
}

void Recorder::ended(int exitCode, QProcess::ExitStatus how) {
    if (!rest_.isEmpty()) readLine(std::exchange(rest_, {}));
    setState(State::Idle);
    if (how == QProcess::NormalExit && exitCode == 0) return emit finished(session_, notes_);
    const ToolError error = toolError(said_);
    if (how == QProcess::CrashExit || error.what.isEmpty())
        return emit failed(
            tr("the recorder of %1 ended unexpectedly").arg(target_),
            steps_ == 0 ? tr("the training goes on; record it again")
                        : tr("the training goes on, and all %1 steps that were finished are in %2")
                              .arg(steps_)
                              .arg(session_));
    emit failed(error.what, error.hint);
}

void Recorder::setState(State state) {
    state_ = state;
    emit changed();
}

}  // namespace hw::viewer
