// The entry page of the playground: takes the token out of the address, opens the socket with it, and puts what comes
// through into the page. Whoever has no token sees a sentence.

const KEY = "compile-lens";
const known = new URLSearchParams(location.hash.slice(1));
const given = known.get("t");
if (given) {
  sessionStorage.setItem(KEY, given);
  // Neither the history nor a link that is copied from the address holds it.
  known.delete("t");
  history.replaceState(null, "", known.size ? `/#${known}` : "/");
}
const token = given ?? sessionStorage.getItem(KEY) ?? "";
const place = document.createElement("main");
document.body.append(place);

/** @param {string} words */
function say(words) {
  const sentence = document.createElement("p");
  sentence.setAttribute("role", "alert");
  sentence.textContent = words;
  place.replaceChildren(sentence);
}

const NO_ENTRY =
  "This is the entry page of a playground. Open the address that compile-lens play printed; it is new each time.";
if (!/^[\w-]{20,}$/.test(token)) say(NO_ENTRY);
else {
  const socket = new WebSocket(`ws://${location.host}/socket`, [KEY, token]);
  const refused = () => say(NO_ENTRY);
  socket.addEventListener("close", refused);
  socket.addEventListener(
    "message",
    ({ data }) => {
      socket.removeEventListener("close", refused);
      const { hello } = JSON.parse(data);
      Object.assign(place, { compileLens: { socket, hello } });
      const script = document.createElement("script");
      script.textContent = hello.script;
      place.append(script);
      script.remove();
    },
    { once: true },
  );
}
