// The page of a capture follows the theme that the site is read in: it looks for html[theme].
(() => {
  const root = document.documentElement;
  const follow = () => root.setAttribute("theme", root.dataset.theme === "dark" ? "dark" : "light");
  new MutationObserver(follow).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  follow();
})();
