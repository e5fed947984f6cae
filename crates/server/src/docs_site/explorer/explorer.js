// Follow the system's color scheme.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#explorer",
  deepLinking: true,
  // The default sends the document to an external validator.
  validatorUrl: null,
});
