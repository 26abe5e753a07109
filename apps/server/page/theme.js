// Before the first paint, so that a chosen theme does not flash. The rest of the page's code is in
// modules, which run later.
const theme = localStorage.getItem('foretoken.theme');
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
