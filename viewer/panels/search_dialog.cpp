// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/search_dialog.h"

#include <QVBoxLayout>

namespace hw::viewer {
namespace {

constexpr QSize kSize(760, 460);

}  // namespace

SearchDialog::SearchDialog(Workspace& workspace, QWidget* parent)
    : SearchDialog(workspace, new SearchModel, parent) {}

SearchDialog::SearchDialog(Workspace& workspace, SearchModel* model, QWidget* parent)
    : Finder(new TableView(model, SearchModel::Place), kSize, parent),
      workspace_(workspace),
      model_(model),
      list_(findChild<TableView*>()) {
    model_->setParent(this);
    setObjectName(QStringLiteral("search"));
    setWindowTitle(tr("Find"));
    field().setPlaceholderText(tr("op, #number, tensor, layer, source line"));
    field().setAccessibleName(tr("what to find"));
    count_ = new QLabel;
    count_->setObjectName(QStringLiteral("muted"));
    layout()->addWidget(count_);
    model_->setDocument(workspace.document());
    narrow({});
}

void SearchDialog::narrow(const QString& typed) {
    model_->setQuery(typed);
    toFirstRow();
    const auto shown = static_cast<std::size_t>(model_->rowCount());
    const std::size_t all = model_->matches();
    count_->setText(typed.trimmed().isEmpty() ? tr("every word has to occur")
                    : all > shown             ? tr("the first %1 of %2").arg(shown).arg(all)
                                              : tr("%1 found").arg(all));
}

void SearchDialog::perform() {
    const QModelIndex row = list_->sourceOf(list_->currentIndex());
    if (!row.isValid()) return;
    workspace_.selection().select(model_->target(row.row()));
    emit found();
    accept();
}

}  // namespace hw::viewer
