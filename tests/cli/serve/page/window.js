// What the page of the program does first: the token, and the greeting that answers it.
const line = new WebSocket("ws://" + location.host + "/tiles");
line.binaryType = "arraybuffer";
line.onopen = () => line.send(new URLSearchParams(location.hash.slice(1)).get("token"));
line.onmessage = (event) => {
  document.title = typeof event.data === "string" ? event.data : document.title + " +";
};
line.onclose = (event) => {
  document.title += " closed " + event.code;
};
