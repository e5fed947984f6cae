// Dark if the reader's machine is, also when that changes while the page is open.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#explorer",
  deepLinking: true,
  // Else the document would be sent to a validator elsewhere.
  validatorUrl: null,
});
