// What the browser keeps for the page. A browser may refuse to keep anything, or have no room left;
// then everything still works until the tab is closed.

class Storage {
  constructor(open) {
    this.open = open; // Gives the browser's storage, or throws where that is refused.
    this.unkept = new Map(); // What the browser would not take.
  }

  /** The text under `name`, or null. */
  get(name) {
    if (this.unkept.has(name)) return this.unkept.get(name);
    try {
      return this.open().getItem(name);
    } catch {
      return null;
    }
  }

  /** The object under `name`, or null where there is none that can be read. */
  getObject(name) {
    try {
      const value = JSON.parse(this.get(name));
      return typeof value === 'object' ? value : null;
    } catch {
      return null;
    }
  }

  /** Keeps `text`. Returns what became of it: '' where all is well, 'full' or 'refused'. */
  set(name, text) {
    try {
      this.open().setItem(name, text);
      this.unkept.delete(name);
      return '';
    } catch (error) {
      this.unkept.set(name, text);
      return error.name === 'QuotaExceededError' ? 'full' : 'refused';
    }
  }

  remove(name) {
    this.unkept.delete(name);
    try {
      this.open().removeItem(name);
    } catch {
      // Nothing was kept.
    }
  }

  /** The names that begin with `prefix`. */
  names(prefix) {
    try {
      return Object.keys(this.open()).filter((name) => name.startsWith(prefix));
    } catch {
      return [];
    }
  }
}

/** Kept from visit to visit, for every tab. */
export const kept = new Storage(() => localStorage);

/** Kept as long as this tab lives. */
export const ofThisTab = new Storage(() => sessionStorage);
