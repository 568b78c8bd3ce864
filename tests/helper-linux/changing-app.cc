// A GTK 3 window that changes in every way that an application's window commonly does: one change
// for each SIGUSR1, in the order of the table, each by its name in the record once it has been laid
// out and drawn. Nothing in it happens by time.
//
//   praefectus-changing --record FILE [--labels N]
//
// With --labels it is a window of N labels, one of which has another text after each signal.
#include <gtk/gtk.h>

#include <glib-unix.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace {

struct Scene {
  int record = -1;
  size_t next = 0;
  GtkWidget *window, *box, *label, *button, *check, *entry, *slider, *spin, *progress, *combo;
  GtkWidget *list, *scrolled, *text, *stack, *expander, *notebook, *radio, *toggle, *extra,
      *revealer;
  GtkWidget *tree, *rows;
  GtkListStore* model;
  bool labelsOnly = false;
};

using Change = void (*)(Scene&);
struct Step {
  const char* name;
  Change change;
};

void scrollTo(GtkWidget* scrolled, double value) {
  gtk_adjustment_set_value(gtk_scrolled_window_get_vadjustment(GTK_SCROLLED_WINDOW(scrolled)),
                           value);
}

const Step STEPS[] = {
    {"nothing", [](Scene&) {}},
    {"label", [](Scene& s) { gtk_label_set_text(GTK_LABEL(s.label), "Another, longer label"); }},
    {"button", [](Scene& s) { gtk_button_set_label(GTK_BUTTON(s.button), "Renamed"); }},
    {"name", [](Scene& s) { atk_object_set_name(gtk_widget_get_accessible(s.slider), "Volume"); }},
    {"check", [](Scene& s) { gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(s.check), TRUE); }},
    {"toggle", [](Scene& s) { gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(s.toggle), TRUE); }},
    {"radio", [](Scene& s) { gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(s.radio), TRUE); }},
    {"insensitive", [](Scene& s) { gtk_widget_set_sensitive(s.button, FALSE); }},
    {"sensitive", [](Scene& s) { gtk_widget_set_sensitive(s.button, TRUE); }},
    {"insensitive box", [](Scene& s) { gtk_widget_set_sensitive(s.rows, FALSE); }},
    {"entry", [](Scene& s) { gtk_entry_set_text(GTK_ENTRY(s.entry), "typed"); }},
    {"read only", [](Scene& s) { gtk_editable_set_editable(GTK_EDITABLE(s.entry), FALSE); }},
    {"slider", [](Scene& s) { gtk_range_set_value(GTK_RANGE(s.slider), 40); }},
    {"spin", [](Scene& s) { gtk_spin_button_set_value(GTK_SPIN_BUTTON(s.spin), 7); }},
    {"progress",
     [](Scene& s) { gtk_progress_bar_set_fraction(GTK_PROGRESS_BAR(s.progress), 0.5); }},
    {"combo", [](Scene& s) { gtk_combo_box_set_active(GTK_COMBO_BOX(s.combo), 1); }},
    {"select row",
     [](Scene& s) {
       gtk_list_box_select_row(GTK_LIST_BOX(s.list),
                               gtk_list_box_get_row_at_index(GTK_LIST_BOX(s.list), 2));
     }},
    {"scroll", [](Scene& s) { scrollTo(s.scrolled, 60); }},
    {"text",
     [](Scene& s) {
       gtk_text_buffer_set_text(gtk_text_view_get_buffer(GTK_TEXT_VIEW(s.text)), "one\ntwo\nthree",
                                -1);
     }},
    {"add",
     [](Scene& s) {
       s.extra = gtk_button_new_with_label("Extra");
       gtk_box_pack_start(GTK_BOX(s.box), s.extra, FALSE, FALSE, 0);
       gtk_widget_show(s.extra);
     }},
    {"move to front", [](Scene& s) { gtk_box_reorder_child(GTK_BOX(s.box), s.extra, 0); }},
    {"hide", [](Scene& s) { gtk_widget_hide(s.extra); }},
    {"show", [](Scene& s) { gtk_widget_show(s.extra); }},
    {"rename hidden",
     [](Scene& s) {
       gtk_widget_hide(s.extra);
       gtk_button_set_label(GTK_BUTTON(s.extra), "Hidden name");
     }},
    {"remove", [](Scene& s) { gtk_widget_destroy(s.extra); }},
    {"page", [](Scene& s) { gtk_notebook_set_current_page(GTK_NOTEBOOK(s.notebook), 1); }},
    {"stack", [](Scene& s) { gtk_stack_set_visible_child_name(GTK_STACK(s.stack), "second"); }},
    {"expand", [](Scene& s) { gtk_expander_set_expanded(GTK_EXPANDER(s.expander), TRUE); }},
    {"reveal", [](Scene& s) { gtk_revealer_set_reveal_child(GTK_REVEALER(s.revealer), TRUE); }},
    {"margin", [](Scene& s) { gtk_widget_set_margin_start(s.box, 30); }},
    {"reparent",
     [](Scene& s) {
       g_object_ref(s.check);
       gtk_container_remove(GTK_CONTAINER(s.box), s.check);
       gtk_box_pack_start(GTK_BOX(s.rows), s.check, FALSE, FALSE, 0);
       g_object_unref(s.check);
     }},
    {"model row",
     [](Scene& s) {
       GtkTreeIter at;
       gtk_list_store_append(s.model, &at);
       gtk_list_store_set(s.model, &at, 0, "new row", -1);
     }},
    {"model text",
     [](Scene& s) {
       GtkTreeIter at;
       gtk_tree_model_get_iter_first(GTK_TREE_MODEL(s.model), &at);
       gtk_list_store_set(s.model, &at, 0, "changed row", -1);
     }},
    {"focus", [](Scene& s) { gtk_widget_grab_focus(s.spin); }},
    {"title", [](Scene& s) { gtk_window_set_title(GTK_WINDOW(s.window), "Changed title"); }},
    {"resize", [](Scene& s) { gtk_window_resize(GTK_WINDOW(s.window), 700, 700); }},
};

void write(Scene& scene, const std::string& line) {
  std::string text = line + "\n";
  if (::write(scene.record, text.data(), text.size()) != static_cast<ssize_t>(text.size())) exit(1);
}

// Two frames later everything is where it will be.
gboolean onFrame(GtkWidget*, GdkFrameClock*, gpointer data) {
  auto& scene = *static_cast<Scene*>(data);
  static int frames = 0;
  if (++frames < 3) return G_SOURCE_CONTINUE;
  frames = 0;
  write(scene, std::string("changed ") + (scene.labelsOnly ? "label" : STEPS[scene.next - 1].name));
  return G_SOURCE_REMOVE;
}

void changeLabel(Scene& scene) {
  auto label = GTK_LABEL(scene.label);
  bool first = strcmp(gtk_label_get_text(label), "Before") == 0;
  gtk_label_set_text(label, first ? "After" : "Before");
}

gboolean onSignal(gpointer data) {
  auto& scene = *static_cast<Scene*>(data);
  if (scene.labelsOnly) {
    changeLabel(scene);
    gtk_widget_add_tick_callback(scene.window, onFrame, &scene, nullptr);
    return G_SOURCE_CONTINUE;
  }
  if (scene.next >= std::size(STEPS)) {
    write(scene, "no more");
    return G_SOURCE_CONTINUE;
  }
  STEPS[scene.next++].change(scene);
  gtk_widget_add_tick_callback(scene.window, onFrame, &scene, nullptr);
  return G_SOURCE_CONTINUE;
}

gboolean onMapped(GtkWidget*, GdkEvent*, gpointer data) {
  write(*static_cast<Scene*>(data), "ready");
  return FALSE;
}

GtkWidget* pack(GtkWidget* box, GtkWidget* child) {
  gtk_box_pack_start(GTK_BOX(box), child, FALSE, FALSE, 0);
  return child;
}

void buildLabels(Scene& s, int count) {
  constexpr int COLUMNS = 10;
  s.labelsOnly = true;
  s.window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
  gtk_window_set_title(GTK_WINDOW(s.window), "Labels");
  gtk_window_set_focus_on_map(GTK_WINDOW(s.window), FALSE);
  s.box = gtk_grid_new();
  gtk_container_add(GTK_CONTAINER(s.window), s.box);
  s.label = gtk_label_new("Before");
  gtk_label_set_width_chars(GTK_LABEL(s.label), COLUMNS);
  gtk_grid_attach(GTK_GRID(s.box), s.label, 0, 0, 1, 1);
  for (int at = 1; at < count; ++at) {
    auto text = "Label " + std::to_string(at);
    gtk_grid_attach(GTK_GRID(s.box), gtk_label_new(text.c_str()), at % COLUMNS, at / COLUMNS, 1, 1);
  }
}

void show(Scene& s) {
  g_signal_connect(s.window, "map-event", G_CALLBACK(onMapped), &s);
  g_signal_connect(s.window, "destroy", G_CALLBACK(gtk_main_quit), nullptr);
  gtk_widget_show_all(s.window);
}

void build(Scene& s) {
  s.window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
  gtk_window_set_title(GTK_WINDOW(s.window), "Changing");
  gtk_window_set_default_size(GTK_WINDOW(s.window), 500, 600);
  gtk_window_set_focus_on_map(GTK_WINDOW(s.window), FALSE);
  s.box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 4);
  gtk_container_add(GTK_CONTAINER(s.window), s.box);
  s.label = pack(s.box, gtk_label_new("Label"));
  s.button = pack(s.box, gtk_button_new_with_label("Button"));
  s.check = pack(s.box, gtk_check_button_new_with_label("Check"));
  s.toggle = pack(s.box, gtk_toggle_button_new_with_label("Toggle"));
  auto first = pack(s.box, gtk_radio_button_new_with_label(nullptr, "First"));
  s.radio =
      pack(s.box, gtk_radio_button_new_with_label_from_widget(GTK_RADIO_BUTTON(first), "Second"));
  s.entry = pack(s.box, gtk_entry_new());
  s.slider = pack(s.box, gtk_scale_new_with_range(GTK_ORIENTATION_HORIZONTAL, 0, 100, 1));
  atk_object_set_name(gtk_widget_get_accessible(s.slider), "Slider");
  s.spin = pack(s.box, gtk_spin_button_new_with_range(0, 10, 1));
  s.progress = pack(s.box, gtk_progress_bar_new());
  s.combo = pack(s.box, gtk_combo_box_text_new());
  for (auto text : {"red", "green", "blue"}) {
    gtk_combo_box_text_append_text(GTK_COMBO_BOX_TEXT(s.combo), text);
  }
  s.rows = pack(s.box, gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 4));
  for (auto text : {"A", "B", "C"}) pack(s.rows, gtk_button_new_with_label(text));
  s.list = gtk_list_box_new();
  for (int row = 0; row < 12; ++row) {
    gtk_container_add(GTK_CONTAINER(s.list), gtk_label_new(("Row " + std::to_string(row)).c_str()));
  }
  s.scrolled = pack(s.box, gtk_scrolled_window_new(nullptr, nullptr));
  gtk_scrolled_window_set_min_content_height(GTK_SCROLLED_WINDOW(s.scrolled), 80);
  gtk_container_add(GTK_CONTAINER(s.scrolled), s.list);
  s.text = pack(s.box, gtk_text_view_new());
  gtk_text_view_set_cursor_visible(GTK_TEXT_VIEW(s.text), FALSE);
  s.stack = pack(s.box, gtk_stack_new());
  gtk_stack_add_named(GTK_STACK(s.stack), gtk_label_new("First page"), "first");
  gtk_stack_add_named(GTK_STACK(s.stack), gtk_label_new("Second page"), "second");
  s.expander = pack(s.box, gtk_expander_new("More"));
  gtk_container_add(GTK_CONTAINER(s.expander), gtk_label_new("Inside"));
  s.revealer = pack(s.box, gtk_revealer_new());
  gtk_revealer_set_transition_type(GTK_REVEALER(s.revealer), GTK_REVEALER_TRANSITION_TYPE_NONE);
  gtk_container_add(GTK_CONTAINER(s.revealer), gtk_label_new("Revealed"));
  s.notebook = pack(s.box, gtk_notebook_new());
  for (auto text : {"One", "Two"}) {
    gtk_notebook_append_page(GTK_NOTEBOOK(s.notebook), gtk_label_new(text), gtk_label_new(text));
  }
  s.model = gtk_list_store_new(1, G_TYPE_STRING);
  for (int row = 0; row < 3; ++row) {
    GtkTreeIter at;
    gtk_list_store_append(s.model, &at);
    gtk_list_store_set(s.model, &at, 0, ("cell " + std::to_string(row)).c_str(), -1);
  }
  s.tree = pack(s.box, gtk_tree_view_new_with_model(GTK_TREE_MODEL(s.model)));
  gtk_tree_view_append_column(GTK_TREE_VIEW(s.tree),
                              gtk_tree_view_column_new_with_attributes(
                                  "Cells", gtk_cell_renderer_text_new(), "text", 0, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  bool labels = argc == 5 && strcmp(argv[3], "--labels") == 0;
  if ((argc != 3 && !labels) || strcmp(argv[1], "--record") != 0) return 2;
  Scene scene{};
  scene.record = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (scene.record < 0) return 1;
  gtk_init(nullptr, nullptr);
  g_object_set(gtk_settings_get_default(), "gtk-cursor-blink", FALSE, "gtk-enable-animations",
               FALSE, nullptr);
  if (labels) {
    buildLabels(scene, atoi(argv[4]));
  } else {
    build(scene);
  }
  show(scene);
  g_unix_signal_add(SIGUSR1, onSignal, &scene);
  gtk_main();
  return 0;
}
