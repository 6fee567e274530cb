// The page of `attnscope report`.
window.attnscopeReport = {facts};
