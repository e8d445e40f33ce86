"""The preview inside a real ComfyUI's page, nodes old and new."""

import time

import pytest
from support.comfyui_samplers import Samplers, fresh, seeds

DONE = " passes"  # how many it took, which is said only at the end


@pytest.fixture(autouse=True)
def ended_runs(client):
    """What a test leaves running would hold up the next one."""
    yield
    client.post("/queue", {"clear": True})
    while client.get("/queue")["queue_running"]:
        client.post("/interrupt", {})
        time.sleep(0.2)


@pytest.fixture(scope="module", params=[False, True], ids=["classic", "nodes-2.0"])
def open_frontend(request, chromium, client):
    """Tabs with the nodes drawn the old or the new way."""
    tabs = []

    def open_one(**settings):
        context = chromium.new_context(viewport={"width": 1500, "height": 1100})
        tabs.append(Samplers(context.new_page(), client, {
            "Comfy.VueNodes.Enabled": request.param, "Comfy.Locale": "en", **settings}))
        return tabs[-1]

    yield open_one
    for tab in tabs:
        tab.page.context.close()


@pytest.fixture(scope="module")
def shared(open_frontend):
    return open_frontend()


@pytest.fixture
def tab(shared):
    """The tab with an empty list of complaints; it must stay empty."""
    shared.errors.clear()
    yield shared
    assert shared.errors == []


def test_rows_are_painted_while_the_node_runs(tab):
    tab.build(fresh(batch_size=4))
    tab.queue()
    tab.wait_painted(1)
    seen = set()
    tab.until(lambda: seen.add(tab.painted()) or max(seen) == 24)
    assert len([rows for rows in seen if 0 < rows < 24]) >= 2, seen
    tab.wait_figures(DONE)


def test_several_samplers_each_show_their_own(tab):
    tab.build(fresh(), fresh(batch_size=2))
    tab.queue()
    tab.wait_figures(DONE, 2)
    for picture in range(3):
        tab.wait_painted(24, picture)
    assert tab.page.locator(".ssd-preview:visible").count() == 2
    grids = [tab.page.locator(".ssd-preview:visible").nth(i).locator(".ssd-picture").count()
             for i in (0, 1)]
    assert grids == [1, 2]


def test_a_second_run_takes_the_place_of_the_first(tab):
    tab.build(fresh())
    tab.queue()
    tab.wait_figures(DONE)
    tab.page.evaluate("(seed) => ssdTest.set(app.graph._nodes.find((node) => "
                      "node.type === 'SSD_Sampler'), { seed })", next(seeds))
    tab.queue()
    tab.wait_figures("pass ")
    tab.wait_figures(DONE)
    tab.wait_painted(24)
    assert tab.page.locator(".ssd-panel:visible").count() == 1


def test_an_interrupt_is_said_and_the_next_run_is_whole(tab):
    tab.build(fresh(batch_size=8))
    tab.queue()
    tab.wait_painted(2)
    tab.server.post("/interrupt", {})
    tab.wait_figures("stopped at row")
    assert tab.painted() < 24
    tab.build(fresh())
    tab.queue()
    tab.wait_figures(DONE)
    tab.wait_painted(24)


def test_a_node_that_is_removed_while_it_runs_leaves_nothing_behind(tab):
    tab.build(fresh(batch_size=8))
    tab.queue()
    tab.wait_painted(1)
    tab.page.evaluate("() => app.graph.remove(app.graph._nodes.find((node) => "
                      "node.type === 'SSD_Sampler'))")
    tab.page.wait_for_function("() => !document.querySelector('.ssd-preview')")
    tab.until(lambda: not tab.server.get("/queue")["queue_running"])
    assert tab.page.locator(".ssd-preview").count() == 0


INTO_SUBGRAPH = """() => {
  const sampler = app.graph._nodes.find((node) => node.type === "SSD_Sampler");
  const { node, subgraph } = app.graph.convertToSubgraph(new Set([sampler]));
  app.canvas.setGraph(subgraph);
  return String(node.id);
}"""


def test_a_result_from_the_cache_fills_the_preview_inside_a_subgraph(tab):
    drawn(tab)
    first = tab.pixels()
    tab.page.evaluate(INTO_SUBGRAPH)
    tab.page.wait_for_selector(".ssd-preview:visible")
    tab.queue()
    tab.page.wait_for_function("(first) => ssdTest.shown('.ssd-pixels').length === 1 "
                               "&& ssdTest.pixels() === first", arg=first)
    tab.page.evaluate("() => app.canvas.setGraph(app.graph)")


def test_a_sampler_inside_a_subgraph_is_reached(tab):
    tab.build(fresh())
    tab.page.evaluate(INTO_SUBGRAPH)
    tab.page.wait_for_selector(".ssd-preview:visible")
    tab.queue()
    tab.wait_figures(DONE)
    tab.wait_painted(24)
    tab.page.evaluate("() => app.canvas.setGraph(app.graph)")
    tab.page.wait_for_selector(".ssd-preview", state="hidden")


def test_a_workflow_that_is_loaded_again_still_shows_its_run(tab):
    tab.build(fresh())
    tab.page.evaluate("""async () => {
      const workflow = JSON.stringify(app.graph.serialize());
      for (let time = 0; time < 2; time++) await app.loadGraphData(JSON.parse(workflow));
    }""")
    tab.page.wait_for_selector(".ssd-preview:visible")
    tab.queue()
    tab.wait_figures(DONE)
    tab.wait_painted(24)


@pytest.mark.parametrize("scale", [0.3, 1.5])
def test_zoom_changes_nothing(tab, scale):
    tab.build(fresh())
    tab.page.evaluate("(scale) => { app.canvas.ds.scale = scale; "
                      "app.canvas.setDirty(true, true); }", scale)
    tab.queue()
    tab.wait_painted(24)
    tab.wait_figures(DONE)
    side = tab.page.evaluate("() => ssdTest.shown('.ssd-picture')[0].offsetWidth")
    assert side >= 192


def test_text_and_picture_stay_inside_the_node(tab):
    tab.build(fresh())
    tab.queue()
    tab.wait_figures(DONE)
    outer = tab.page.locator(".ssd-preview:visible").bounding_box()
    for part in ("picture", "figures", "toggle"):
        box = tab.page.locator(f".ssd-{part}:visible").bounding_box()
        assert box["y"] + box["height"] <= outer["y"] + outer["height"] + 1, part
        assert box["x"] + box["width"] <= outer["x"] + outer["width"] + 1, part


def test_the_wheel_over_the_picture_zooms_the_canvas(tab):
    tab.build(fresh())
    box = tab.page.locator(".ssd-preview:visible").bounding_box()
    before = tab.page.evaluate("() => app.canvas.ds.scale")
    tab.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.page.mouse.wheel(0, -120)
    tab.page.wait_for_function("(before) => app.canvas.ds.scale > before", arg=before)
    assert tab.page.evaluate("() => app.canvas.ds.scale") < 1.3 * before


def test_the_overlay_can_be_switched_on_the_node(tab):
    tab.build(fresh())
    toggle = tab.page.locator(".ssd-toggle:visible")
    before = toggle.get_attribute("aria-pressed")
    toggle.click()
    assert toggle.get_attribute("aria-pressed") != before
    toggle.click()


def test_neither_the_workflow_nor_the_prompt_knows_of_the_preview(tab):
    tab.build(fresh())
    told = tab.page.evaluate("""async () => {
      const node = app.graph._nodes.find((one) => one.type === "SSD_Sampler");
      const { output } = await app.graphToPrompt();
      return [node.serialize().widgets_values.length,
        node.widgets.filter((widget) => widget.serialize !== false).length,
        Object.keys(output[String(node.id)].inputs)];
    }""")
    assert told[0] == told[1] and "ssd_preview" not in told[2]


def test_a_tab_that_is_reloaded_meets_the_run_in_its_middle(open_frontend):
    tab = open_frontend()
    for _ in range(4):  # so that one is running whenever the page is back
        tab.build(fresh(batch_size=64))
        tab.draw_by_ar()
        tab.queue()
    tab.wait_painted(1)
    tab.page.reload(wait_until="domcontentloaded")
    tab.ready()
    tab.build(fresh())
    assert tab.server.get("/queue")["queue_running"], "the runs ended before the page was back"
    tab.wait_painted(1)
    tab.wait_upper_half()
    assert tab.page.locator(".ssd-heading:visible").inner_text() == "Reference"
    tab.server.post("/queue", {"clear": True})
    tab.server.post("/interrupt", {})
    tab.wait_figures("stopped at row")
    tab.queue()
    tab.wait_figures(DONE)
    tab.wait_painted(24)
    assert tab.errors == []


def test_a_node_made_in_mid_run_shows_what_it_missed(tab):
    tab.build(fresh(batch_size=24))
    tab.draw_by_ar()
    tab.queue()
    tab.wait_painted(2)
    tab.build(fresh())  # a node of the same id, in a graph that has none
    tab.wait_painted(2)
    assert tab.page.locator(".ssd-heading:visible").inner_text() == "Reference"


def whole(tab):
    """The finished picture and its figures are there, once."""
    tab.wait_painted(24)
    tab.wait_figures(DONE)
    assert tab.page.locator(".ssd-picture:visible").count() == 1
    shown = tab.page.evaluate("() => app.graph._nodes.filter((node) => "
                              "node.type === 'SSD_Sampler' && node.imgs?.length).length")
    assert shown == 0, "ComfyUI shows the picture as well"


def drawn(tab):
    """A workflow in a tab of its own, run to its end."""
    tab.open_quick_start()
    tab.queue()
    whole(tab)


def test_another_tab_of_the_page_and_back(tab):
    drawn(tab)
    tab.command("Comfy.NewBlankWorkflow")
    tab.page.wait_for_selector(".ssd-preview", state="hidden")
    tab.command("Workspace.PreviousOpenedWorkflow")
    whole(tab)


def test_a_run_goes_on_while_another_tab_of_the_page_is_shown(tab):
    tab.open_quick_start(batch_size=12)
    tab.queue()
    tab.wait_painted(1)
    tab.command("Comfy.NewBlankWorkflow")
    tab.page.wait_for_selector(".ssd-preview", state="hidden")
    tab.command("Workspace.PreviousOpenedWorkflow")
    tab.wait_painted(1)
    for picture in range(12):
        tab.wait_painted(24, picture)
    tab.wait_figures(DONE)


def test_nodes_of_another_workflow_do_not_show_its_picture(tab):
    drawn(tab)
    tab.open_quick_start()
    tab.page.wait_for_selector(".ssd-note:visible")
    assert tab.painted() == -1


def test_undo_and_redo(tab):
    drawn(tab)
    tab.change("(node) => { node.title = 'changed'; }")
    for step in ("undo", "redo"):
        tab.page.evaluate("(step) => app.extensionManager.workflow.activeWorkflow"
                          ".changeTracker[step]()", step)
        tab.rest()
        whole(tab)


def test_a_result_from_the_cache(tab):
    drawn(tab)
    tab.queue()
    tab.wait_queue()
    whole(tab)


def test_an_older_result_from_the_cache_shows_its_own_picture(tab):
    drawn(tab)
    seed = tab.change("(node) => node.widgets.find((one) => one.name === 'seed').value")
    first = tab.pixels()
    tab.change("(node) => ssdTest.set(node, { seed: node.widgets.find((one) => "
               "one.name === 'seed').value + 500000 })")
    tab.queue()
    tab.wait_queue()
    whole(tab)
    assert tab.pixels() != first
    tab.change("(node, seed) => ssdTest.set(node, { seed })", seed)
    tab.queue()
    tab.wait_queue()
    tab.page.wait_for_function("(first) => ssdTest.pixels() === first", arg=first)
    whole(tab)


def test_a_reload_in_mid_run_goes_on_where_it_is(open_frontend):
    tab = open_frontend()
    tab.open_quick_start(batch_size=24)
    tab.draw_by_ar()
    for _ in range(4):  # so that one is running whenever the page is back
        tab.change("(node, values) => ssdTest.set(node, values)", fresh())
        tab.queue()
    tab.wait_painted(2)
    tab.reload()
    assert tab.server.get("/queue")["queue_running"], "the runs ended before the page was back"
    tab.server.post("/queue", {"clear": True})
    tab.wait_painted(2)
    assert tab.page.locator(".ssd-heading:visible").inner_text() == "Reference"
    for picture in range(24):
        tab.wait_painted(24, picture)
    tab.wait_figures(DONE)
    assert tab.errors == []


def test_a_reload_after_the_end_shows_the_picture(open_frontend):
    tab = open_frontend()
    drawn(tab)
    tab.reload()
    whole(tab)
    tab.queue()
    tab.wait_queue()
    whole(tab)
    assert tab.errors == []


def test_spare_height_of_the_node_goes_to_the_preview(tab):
    drawn(tab)
    before = tab.page.evaluate("() => [ssdTest.shown('.ssd-preview')[0].offsetHeight, "
                               "ssdTest.shown('.ssd-picture')[0].offsetHeight]")
    tab.change("(node) => { node.setSize([node.size[0] + 250, node.size[1] + 450]); "
               "app.canvas.setDirty(true, true); }")
    tab.page.wait_for_function(
        "([box, side]) => ssdTest.shown('.ssd-preview')[0].offsetHeight >= box + 410 "
        "&& ssdTest.shown('.ssd-picture')[0].offsetHeight >= side + 290", arg=before)
    side = tab.page.evaluate("() => ssdTest.shown('.ssd-picture')[0].offsetWidth")
    assert side % 192 != 0


def test_the_host_s_language_is_spoken(open_frontend):
    tab = open_frontend(**{"Comfy.Locale": "zh"})
    tab.page.reload(wait_until="domcontentloaded")
    tab.ready()
    tab.build(fresh())
    assert tab.page.locator(".ssd-toggle").inner_text() == "叠加层"
    assert tab.page.evaluate("() => app.graph._nodes.find((node) => "
                             "node.type === 'SSD_Sampler').title") == "SSD 采样器"
    assert tab.change("(node) => node.widgets.find((one) => one.name === 'method')"
                      ".options.getOptionLabel('Faithful')") == "忠实"
    tab.page.evaluate("() => app.extensionManager.setting.set('Comfy.Locale', 'en')")


def test_help_and_locales_are_served(client):
    assert client.read("/extensions/ssd-decoding/docs/SSD_Sampler.md").startswith(b"# SSD Sampler")
    assert client.read("/extensions/ssd-decoding/docs/SSD_Sampler/zh.md").startswith(b"# SSD ")
    told = client.get("/i18n")
    assert told["zh"]["nodeDefs"]["SSD_Compare"]["display_name"].startswith("比较")
