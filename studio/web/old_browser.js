/** Shows a line in a browser that lacks what the page needs. No module, and in old words. */

(function () {
  var styles = window.CSS && CSS.supports && CSS.supports("color", "light-dark(red, red)");
  if (!styles || !("popover" in HTMLElement.prototype) || ![].toSpliced)
    document.getElementById("old-browser").removeAttribute("hidden");
})();
