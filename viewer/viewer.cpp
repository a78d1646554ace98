// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/viewer.h"

#include <QApplication>
#include <QFileInfo>
#include <QIcon>
#include <QPageSize>
#include <QStyleFactory>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "planners/registry.h"
#include "viewer/export/picture.h"
#include "viewer/export/report.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/panel.h"
#include "viewer/plots/theme.h"

// Resources of a static library have to be named once, outside any namespace.
static void initResources() {
    Q_INIT_RESOURCE(resources);
}

namespace hw::viewer {
namespace {

constexpr int kSmallest = 200, kLargest = 20000, kWindowHeight = 1000;
constexpr const char* kWindowView = "window";

// Qt ends the process where it cannot reach a display, so this asks first. A local X display (":0",
// ":0.0") has a socket; of a remote one only its server could tell.
bool hasDisplay() {
    if (qEnvironmentVariableIsSet("QT_QPA_PLATFORM") ||
        !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY"))
        return true;
    const QString display = qEnvironmentVariable("DISPLAY");
    if (!display.startsWith(QLatin1Char(':'))) return !display.isEmpty();
    const QString number = display.mid(1).section(QLatin1Char('.'), 0, 0);
    return QFileInfo::exists(QStringLiteral("/tmp/.X11-unix/X") + number);
}

void dress(bool light) {
    initResources();
    QApplication::setApplicationName(QStringLiteral("Highwater"));
    QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    QApplication::setWindowIcon(QIcon(QStringLiteral(":/highwater/icon.svg")));
    QApplication::setFont(uiFont(kBasePixels));
    setTheme(light);
    qApp->setStyleSheet(theme().styleSheet());
}

// The platform that needs no display mentions, on every picture, what it cannot do.
void dropPlatformNoise(QtMsgType type, const QMessageLogContext& context, const QString& message) {
    if (message.startsWith(QLatin1String("This plugin does not support")) ||
        message.startsWith(QLatin1String("QStandardPaths: XDG_RUNTIME_DIR")))
        return;
    std::cerr << qFormatLogMessage(type, context, message).toStdString() << '\n';
}

// One application a process: Qt allows no second, and a caller may have made one.
void ensureApplication() {
    if (QCoreApplication::instance()) return;
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
    qInstallMessageHandler(dropPlatformNoise);
    static int argc = 1;
    static char name[] = "highwater";
    static char* argv[] = {name, nullptr};
    static const QApplication application(argc, argv);
}

core::Status check(const ShotOptions& options) {
    const std::vector<std::string> names = viewNames();
    if (std::find(names.begin(), names.end(), options.view) == names.end()) {
        std::string known;
        for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
        return core::Error{core::ErrorCode::Usage, "there is no view \"" + options.view + "\"",
                           "the views are " + known};
    }
    for (const std::string& planner : options.planners)
        if (const auto known = planners::makePlanner(planner); !known) return known.error();
    const auto outside = [](int length) { return length < kSmallest || length > kLargest; };
    if (outside(options.width) || (options.height != 0 && outside(options.height)) ||
        !std::isfinite(options.scale) || options.scale < 0.1 || options.scale > 10)
        return core::Error{
            core::ErrorCode::Usage, "the picture cannot have this size",
            "width and height lie between 200 and 20000, the scale between 0.1 and 10"};
    return checkPictureName(options.output);
}

// A hidden widget gets its layout only when it is asked for it, docks only when they are shown;
// WA_DontShowOnScreen does both without a window appearing.
core::Result<QSize> draw(QWidget& widget, const ShotOptions& options, int naturalHeight) {
    widget.setAttribute(Qt::WA_DontShowOnScreen);
    const QSize wanted(options.width, options.height != 0 ? options.height : naturalHeight);
    widget.resize(wanted);
    widget.show();
    QApplication::processEvents();
    widget.resize(wanted);  // docks ask for more than they need until they are shown
    QApplication::processEvents();
    if (core::Status saved = savePictureOf(widget, options.output, options.scale); !saved)
        return saved.error();
    return widget.size();
}

void selectPlanners(Workspace& workspace, const std::vector<std::string>& planners, bool every) {
    QStringList names;
    for (const std::string& name : planners) names << QString::fromStdString(name);
    if (!names.isEmpty() || every)
        workspace.selectPlanners(names.isEmpty() ? Workspace::planners() : names);
}

QStringList filesOf(const std::vector<std::string>& paths) {
    QStringList files;
    for (const std::string& path : paths) files << QString::fromStdString(path);
    return files;
}

core::Result<QSize> drawPanel(const PanelKind& kind, const ShotOptions& options) {
    Workspace workspace;
    selectPlanners(workspace, options.planners, kind.everyPlanner);
    workspace.setRecords(filesOf(options.with));
    if (core::Status opened = workspace.openNow(options.session, options.plans, options.step);
        !opened)
        return opened.error();
    QWidget frame;
    auto* column = new QVBoxLayout(&frame);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    Panel* panel = kind.make(workspace);
    column->addWidget(panel->header());
    column->addWidget(panel, 1);
    if (core::Status axes = panel->chooseAxes({options.bySteps, options.byBytes}); !axes)
        return axes.error();
    if (core::Status ready = panel->prepareShot(options.plans); !ready) return ready.error();
    panel->applyTheme();
    return draw(frame, options, panel->header()->sizeHint().height() + panel->naturalHeight());
}

core::Result<QSize> drawWindow(const ShotOptions& options) {
    MainWindow window;
    window.resize(options.width, kWindowHeight);
    selectPlanners(window.workspace(), options.planners, false);
    if (core::Status ready = window.prepareShot(options.session, options.plans, options.step);
        !ready)
        return ready.error();
    window.setLight(options.light);
    return draw(window, options, kWindowHeight);
}

}  // namespace

std::vector<std::string> viewNames() {
    std::vector<std::string> names;
    for (const PanelKind* kind : panelKinds()) names.emplace_back(kind->name);
    names.emplace_back(kWindowView);
    return names;
}

core::Result<ShotSummary> shot(const ShotOptions& options) {
    if (core::Status usable = check(options); !usable) return usable.error();
    ensureApplication();
    dress(options.light);
    core::Result<QSize> drawn(QSize{});
    if (options.view == kWindowView) {
        drawn = drawWindow(options);
    } else {
        for (const PanelKind* kind : panelKinds())
            if (kind->name == options.view) drawn = drawPanel(*kind, options);
    }
    if (!drawn) return drawn.error();
    const bool pixels =
        options.output.size() > 4 &&
        QString::fromStdString(options.output).endsWith(QLatin1String(".png"), Qt::CaseInsensitive);
    const double scale = pixels ? options.scale : 1;
    return ShotSummary{options.output, static_cast<int>(std::lround(drawn->width() * scale)),
                       static_cast<int>(std::lround(drawn->height() * scale))};
}

core::Result<ReportSummary> report(const ReportOptions& options) {
    if (core::Status name = checkReportName(options.output); !name) return name.error();
    for (const std::string& planner : options.planners)
        if (const auto known = planners::makePlanner(planner); !known) return known.error();
    if (options.ratio && !(*options.ratio > 0 && *options.ratio <= 1))
        return core::Error{core::ErrorCode::Usage, "the budget is no share of the peak",
                           "--ratio lies above 0 and at most at 1, such as 0.5"};
    ensureApplication();
    dress(true);
    Workspace workspace;
    selectPlanners(workspace, options.planners, false);
    if (core::Status opened = workspace.openNow(options.session, options.plans, options.step);
        !opened)
        return opened.error();
    workspace.setRecords(filesOf(options.with));
    if (options.ratio) workspace.placeBudget(*options.ratio);
    if (core::Status planned = workspace.planNow(); !planned) return planned.error();
    if (core::Status drawn = workspace.frontierNow(); !drawn) return drawn.error();
    if (core::Status saved = saveReport(workspace, options.output); !saved) return saved.error();
    if (!QString::fromStdString(options.output)
             .endsWith(QLatin1String(".pdf"), Qt::CaseInsensitive))
        return ReportSummary{options.output, kReportWidth, std::nullopt};
    const QSize page = QPageSize(QPageSize::A4).sizePixels(96);
    return ReportSummary{options.output, page.width(), page.height()};
}

core::Result<int> runWindow(int& argc, char** argv, const std::string& session,
                            const std::vector<std::string>& plans,
                            const std::vector<std::string>& with) {
    if (!hasDisplay())
        return core::Error{core::ErrorCode::Usage, "there is no display to open the window on",
                           "set DISPLAY, or draw into a file with `highwater shot`"};
    QApplication application(argc, argv);
    dress(false);
    MainWindow window;
    window.useMemory(WindowMemory(
        std::make_unique<QSettings>(QStringLiteral("highwater"), QStringLiteral("window"))));
    window.show();
    window.workspace().setRecords(filesOf(with));
    if (session.empty())
        window.welcome();
    else
        window.open(QString::fromStdString(session), filesOf(plans));
    return QApplication::exec();
}

}  // namespace hw::viewer
