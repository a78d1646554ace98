// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/viewer.h"

#include <QApplication>
#include <QIcon>
#include <QPageSize>
#include <QStyleFactory>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "planners/registry.h"
#include "viewer/export/picture.h"
#include "viewer/export/report.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/view_picture.h"
#include "viewer/platform_check.h"
#include "viewer/plots/theme.h"

// Resources of a static library have to be named once, outside any namespace.
static void initResources() {
    Q_INIT_RESOURCE(resources);
}

namespace hw::viewer {
namespace {

constexpr int kSmallest = 200, kLargest = 20000, kWindowHeight = 1000;
constexpr const char* kWindowView = "window";

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
    const double scale = options.scale.value_or(1);
    if ((options.width != 0 && outside(options.width)) ||
        (options.height != 0 && outside(options.height)) || !std::isfinite(scale) || scale < 0.1 ||
        scale > 10)
        return core::Error{
            core::ErrorCode::Usage, "the picture cannot have this size",
            "width and height lie between 200 and 20000, the scale between 0.1 and 10"};
    return checkPictureName(options.output);
}

void selectPlanners(Workspace& workspace, const std::vector<std::string>& planners, bool every) {
    QStringList names;
    for (const std::string& name : planners) names << QString::fromStdString(name);
    if (!names.isEmpty() || every)
        workspace.selectPlanners(names.isEmpty() ? plannerNames() : names);
}

QStringList filesOf(const std::vector<std::string>& paths) {
    QStringList files;
    for (const std::string& path : paths) files << QString::fromStdString(path);
    return files;
}

core::Result<QSize> drawPanel(const PanelKind& kind, const ShotOptions& options,
                              const PicturePreset& size) {
    Workspace workspace;
    selectPlanners(workspace, options.planners, kind.everyPlanner);
    workspace.loader().setRecords(filesOf(options.with));
    if (core::Status opened = workspace.loader().openNow(options.session, options.plans,
                                                         options.step, options.device);
        !opened)
        return opened.error();
    if (core::Status loaded = workspace.loader().loadOtherNow(); !loaded) return loaded.error();
    return savePictureOfView(
        workspace, kind,
        {options.output, size, {options.bySteps, options.byBytes}, options.plans, options.select},
        true);
}

core::Result<QSize> drawWindow(const ShotOptions& options, const PicturePreset& size) {
    MainWindow window;
    const QSize wanted(size.width, size.height != 0 ? size.height : kWindowHeight);
    window.resize(wanted);
    selectPlanners(window.workspace(), options.planners, false);
    if (core::Status ready =
            window.prepareShot(options.session, options.plans, options.step, options.device);
        !ready)
        return ready.error();
    window.workspace().loader().setRecords(filesOf(options.with));
    if (core::Status loaded = window.workspace().loader().loadOtherNow(); !loaded)
        return loaded.error();
    if (core::Status selected = selectWords(window.workspace(), options.select); !selected)
        return selected.error();
    window.setLight(size.light);
    if (core::Status drawn =
            drawHidden(window, wanted, options.output, size.scale, size.millimetres);
        !drawn)
        return drawn.error();
    return window.size();
}

// What is named goes over what the preset says.
core::Result<PicturePreset> sizeOf(const ShotOptions& options) {
    core::Result<PicturePreset> size =
        picturePreset(options.preset.empty() ? picturePresets().front().name : options.preset);
    if (!size) return size;
    if (options.width != 0) size->width = options.width;
    if (options.height != 0) size->height = options.height;
    if (options.scale) size->scale = *options.scale;
    size->light = size->light || options.light;
    return size;
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
    const core::Result<PicturePreset> size = sizeOf(options);
    if (!size) return size.error();
    ensureApplication();
    dress(size->light);
    core::Result<QSize> drawn(QSize{});
    if (options.view == kWindowView) {
        drawn = drawWindow(options, *size);
    } else {
        for (const PanelKind* kind : panelKinds())
            if (kind->name == options.view) drawn = drawPanel(*kind, options, *size);
    }
    if (!drawn) return drawn.error();
    const bool pixels =
        options.output.size() > 4 &&
        QString::fromStdString(options.output).endsWith(QLatin1String(".png"), Qt::CaseInsensitive);
    const double scale = pixels ? size->scale : 1;
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
    if (core::Status opened =
            workspace.loader().openNow(options.session, options.plans, options.step);
        !opened)
        return opened.error();
    workspace.loader().setRecords(filesOf(options.with));
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
    if (core::Status able = checkPlatform(); !able) return able.error();
    QApplication application(argc, argv);
    dress(false);
    MainWindow window;
    window.useMemory(WindowMemory(
        std::make_unique<QSettings>(QStringLiteral("highwater"), QStringLiteral("window"))));
    window.show();
    window.workspace().loader().setRecords(filesOf(with));
    if (session.empty())
        window.welcome();
    else
        window.open(QString::fromStdString(session), filesOf(plans));
    return QApplication::exec();
}

}  // namespace hw::viewer
